"""smollm2_reference.json: completions of texts and chats by SmolLM2-135M-Instruct, as scripts/smollm2 unpacks it in
float32."""
from reference.files import write_lines

TEXTS = r"""The capital of France is
Once upon a time, there was a little
Water boils at
def fibonacci(n):
The opposite of hot is
To be, or not to be, that is
The largest planet in our solar system is
Photosynthesis is the process by which
In 1969, Neil Armstrong
The quick brown fox
A triangle has three
import numpy as np\n\n
Roses are red,
The Great Wall of China
Machine learning is
Dear Sir or Madam,\n\nI am writing to
The recipe needs 2 cups of flour, 3 eggs and
Isaac Newton discovered
SELECT name FROM users WHERE
The heart pumps
List of colors: red, green,
She opened the door and
Mount Everest is 8,849 metres
The chemical symbol for gold is
1, 2, 3, 4, 5,
My favourite season is
Le chat est sur
The Pacific Ocean is
Shakespeare wrote
A good night's sleep
The first president of the United States was
Bees are important because
for i in range(10):
The train to London""".splitlines()  # \n in a text stands for a new line
QUESTIONS = """What is the capital of Italy?
Write a sentence about the sea.
How many days are in a week?
What is 7 plus 5?
Explain gravity to a child.
Who wrote Romeo and Juliet?
Translate "good morning" into Spanish.
Give me three fruits.
What does a package manager do?
Name a programming language.
What is the boiling point of water in Celsius?
Summarize: The cat sat on the mat. It was warm and slept all day.
Is the sun a star?
Write a haiku about autumn.
How do I list files on Linux?
What colour is the sky?""".splitlines()
CHATS = [
    [{"role": "system", "content": "You answer in one word."},
     {"role": "user", "content": "What is the capital of Spain?"}],
    [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello! How can I help you?"},
     {"role": "user", "content": "Tell me a joke."}],
    [{"role": "system", "content": ""}, {"role": "user", "content": "What is a pipeline?"}],
    [{"role": "user", "content": "  Two spaces, a tab\tand 12345 - na\u00efve caf\u00e9 \u4e16\u754c \U0001f642  "}],
]
PROMPTS, TOLD, WITH_LOGITS, TOP = 50, 20, 5, 8
MARGIN = 2e-3  # least difference between the best two tokens of a recorded step; rounding could decide below it


def prompts_of(tokenizer):
    """Returns the chats as rendered by the template, and the texts unchanged."""
    chats = CHATS + [[{"role": "user", "content": question}] for question in QUESTIONS]
    rendered = [tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]
    return [{"messages": chat, "prompt": text} for chat, text in zip(chats, rendered)] + [
        {"prompt": text.replace("\\n", "\n")} for text in TEXTS]


def completed(model, tokenizer, prompt):
    """Adds ids, the greedy completion and the smallest margin of its choices."""
    import torch
    ids = tokenizer(prompt["prompt"], return_tensors="pt")
    answer = model.generate(**ids, max_new_tokens=TOLD, do_sample=False, return_dict_in_generate=True,
                            output_logits=True)
    best = torch.stack(answer.logits)[:, 0].topk(2).values
    new = answer.sequences[0, ids.input_ids.shape[1]:]
    return {**prompt, "ids": ids.input_ids[0].tolist(), "completion_ids": new.tolist(),
            "completion": tokenizer.decode(new, skip_special_tokens=True),
            "margin": round((best[:, 0] - best[:, 1]).min().item(), 6)}


def with_logits(model, case):
    """Adds the best tokens and their logits after each token of the prompt, and the prompt's mean loss."""
    import torch
    ids = torch.tensor([case["ids"]])
    with torch.no_grad():
        answer = model(input_ids=ids, labels=ids)
    best = answer.logits[0].topk(TOP)
    return {**case, "loss": answer.loss.item(), "top_ids": best.indices.tolist(),
            "top_logits": [[float(f"{value:.7g}") for value in row] for row in best.values.tolist()]}


def record_completions(model_folder, path):
    """Records greedy completions of 50 prompts and the best logits of 5 of them."""
    import torch
    import transformers
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32,
                                                              attn_implementation="eager").eval()
    cases = []
    for prompt in prompts_of(tokenizer):
        case = completed(model, tokenizer, prompt)
        if case["margin"] >= MARGIN and len(cases) < PROMPTS:
            cases.append(case)
    spread = len(cases) // WITH_LOGITS
    cases = [with_logits(model, case) if n % spread == 0 else case for n, case in enumerate(cases)]
    head = {"transformers": transformers.__version__, "torch": torch.__version__,
            "explanation": f"float32, eager attention; completion_ids are greedy, {TOLD} or up to the end token; "
                           "margin is the least difference of the two best logits on the way; top_logits after every "
                           "token of the prompt; loss is the mean over the prompt's tokens but the first"}
    write_lines(path, head, {"prompts": cases})
