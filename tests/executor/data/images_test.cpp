#include "executor/data/images.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "tests/executor/data/reference_pictures.h"
#include "tests/support/scratch_folder.h"

namespace frostpipe {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using test::decode;
using test::reference_file;

class ImagesTest : public test::ScratchFolderTest {
 protected:
  std::string message_for(const fs::path& path) const {
    return message_of([&] { open_images(path); });
  }
};

// ---- CIFAR --------------------------------------------------------------------------------------

/// Pixel j of record i is (i * 31 + j) mod 256.
std::string cifar_record(const Strings& labels, int i) {
  std::string record;
  for (const std::string& label : labels) record.push_back(static_cast<char>(std::stoi(label)));
  for (int j = 0; j < 3072; ++j) record.push_back(static_cast<char>(i * 31 + j));
  return record;
}

TEST_F(ImagesTest, ReadsCifar10) {
  const ImageData data = open_images(file("data.bin", cifar_record({"9"}, 0) + cifar_record({"0"}, 1)));
  ASSERT_EQ(data.size(), 2);
  EXPECT_EQ(data.label(0), 9);
  EXPECT_EQ(data.label(1), 0);
  EXPECT_EQ(data.label_names(), (Strings{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  const Image image = data.load(1);
  EXPECT_EQ(image.height, 32);
  EXPECT_EQ(image.width, 32);
  ASSERT_EQ(image.pixels.size(), 3072u);
  for (std::size_t j = 0; j < 3072; ++j) ASSERT_EQ(image.pixels[j], (31 + j) % 256);
  EXPECT_EQ(data.place(1), (folder_ / "data.bin").string() + ": record 1");
}

TEST_F(ImagesTest, OfCifar100TheFineLabelCounts) {
  const ImageData data = open_images(file("data.bin", cifar_record({"19", "99"}, 0) + cifar_record({"3", "42"}, 1)));
  ASSERT_EQ(data.size(), 2);
  EXPECT_EQ(data.label(0), 99);
  EXPECT_EQ(data.label(1), 42);
  EXPECT_EQ(data.label_names().size(), 100u);
  EXPECT_EQ(data.load(1).pixels.front(), 31);
  EXPECT_EQ(data.load(1).pixels.back(), (31 + 3071) % 256);
}

TEST_F(ImagesTest, NamesCifarLabelsByTheFileBeside) {
  file("ten/batches.meta.txt", "airplane\nautomobile\r\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n");
  const fs::path ten = file("ten/data.bin", cifar_record({"3"}, 0));
  EXPECT_EQ(open_images(ten).label_names(),
            (Strings{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}));
  std::string names;
  for (int i = 0; i < 100; ++i) names += "fine" + std::to_string(i) + "\n";
  file("hundred/fine_label_names.txt", names);
  file("hundred/batches.meta.txt", "of no matter to CIFAR-100");
  const fs::path hundred = file("hundred/data.bin", cifar_record({"0", "7"}, 0));
  EXPECT_EQ(open_images(hundred).label_names().at(7), "fine7");

  file("ten/batches.meta.txt", "airplane\nautomobile\n");
  EXPECT_EQ(message_for(ten), "ten/batches.meta.txt: must have 10 lines, a label's name each, is with 2");
  file("ten/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\nb\nj\n");
  EXPECT_EQ(message_for(ten), "ten/batches.meta.txt: names of labels must differ, is twice \"b\"");
}

TEST_F(ImagesTest, CifarErrorsNameTheRecord) {
  EXPECT_EQ(message_for(file("data.bin", cifar_record({"9"}, 0) + cifar_record({"10"}, 1))),
            "data.bin: record 1: the label must be < 10, is 10");
  EXPECT_EQ(message_for(file("data.bin", cifar_record({"0", "100"}, 0))),
            "data.bin: record 0: the label must be < 100, is 100");
  EXPECT_EQ(message_for(file("data.bin", cifar_record({"20", "1"}, 0))),
            "data.bin: record 0: the coarse label must be < 20, is 20");
  EXPECT_EQ(message_for(file("data.bin", "")),
            "data.bin: a CIFAR file must have a multiple of 3073 (CIFAR-10) or 3074 bytes (CIFAR-100), is 0");
  EXPECT_EQ(message_for(file("data.bin", cifar_record({"1"}, 0) + "x" + cifar_record({"1"}, 0))),
            "data.bin: a CIFAR file must have a multiple of 3073 (CIFAR-10) or 3074 bytes (CIFAR-100), is 6147");
  EXPECT_EQ(message_for(folder_ / "missing.bin"), "missing.bin: cannot be read: No such file or directory");
  EXPECT_EQ(message_for("/dev/zero"), "/dev/zero: must be a folder of images or a binary file of CIFAR, is neither");
}

TEST_F(ImagesTest, ASizeThatFitsBothKindsOfCifarIsDecidedByTheNames) {
  const std::string content(3073 * 3074, '\0');
  const auto size_of = [&](const std::string& name) { return open_images(file(name, content)).label_names().size(); };
  EXPECT_EQ(size_of("cifar-10-batches/train.bin"), 10u);
  EXPECT_EQ(size_of("cifar100/train.bin"), 100u);
  EXPECT_EQ(size_of("cifar100/train_10000.bin"), 100u);
  EXPECT_EQ(size_of("data/cifar10.bin"), 10u);
  const std::string rule =
      "is ambiguous: a file whose size fits both CIFAR-10 and CIFAR-100 must have either 10 or 100 in its name or its "
      "folder's, is ";
  EXPECT_EQ(message_for(file("data/train_10000.bin", content)),
            "data/train_10000.bin: " + rule + "\"train_10000.bin\" in \"data\" of 9446402 bytes");
  EXPECT_EQ(message_for(file("cifar10/cifar100.bin", content)),
            "cifar10/cifar100.bin: " + rule + "\"cifar100.bin\" in \"cifar10\" of 9446402 bytes");
}

// ---- Folders ------------------------------------------------------------------------------------

TEST_F(ImagesTest, ReadsAFolderPerLabelInOrderOfBytes) {
  const std::string red = reference_file("PNG of one pixel"), blue = reference_file("JPEG of one pixel");
  file("b/2.png", red);
  file("b/10.JPEG", blue);
  file("B/x.Jpg", blue);
  file("é/a.PNG", red);
  file("é/.hidden.txt");
  file(".git/whatever.txt");
  file("LICENSE.txt");
  const ImageData data = open_images(folder_);
  EXPECT_EQ(data.label_names(), (Strings{"B", "b", "é"}));
  ASSERT_EQ(data.size(), 4);
  std::vector<int> labels;
  for (int i = 0; i < data.size(); ++i) labels.push_back(data.label(i));
  EXPECT_EQ(labels, (std::vector<int>{0, 1, 1, 2}));
  const std::vector<Image> expected = {decode(blue), decode(blue), decode(red), decode(red)};
  for (int i = 0; i < data.size(); ++i) EXPECT_EQ(data.load(i), expected[static_cast<std::size_t>(i)]) << i;
}

TEST_F(ImagesTest, FolderErrorsNameTheFirstOffence) {
  EXPECT_EQ(message_for(folder_),
            "FOLDER: must have a sub-folder of images for each label (or be a binary file of CIFAR), is a folder "
            "without one");
  file("a/1.png");
  EXPECT_EQ(message_for(folder_), "FOLDER: must have at least two different labels, is all \"a\"");
  fs::create_directories(folder_ / "b");
  EXPECT_EQ(message_for(folder_), "b: a label's folder must hold an image, is without one");
  file("b/2.png");
  file("b/1.gif");
  EXPECT_EQ(message_for(folder_),
            "b/1.gif: a label's folder must hold nothing but files that end in .jpg, .jpeg or .png, is another file");
  fs::create_directories(folder_ / "a" / "0.png");
  EXPECT_EQ(message_for(folder_),
            "a/0.png: a label's folder must hold nothing but files that end in .jpg, .jpeg or .png, is a folder");
  file("0.jpg");
  EXPECT_EQ(message_for(folder_), "0.jpg: an image must lie in the folder of its label, is beside those");
  file("latin1/caf\xe9/1.png");
  EXPECT_EQ(message_for(folder_ / "latin1"),
            "latin1/caf\xe9: a label's folder must have a name in UTF-8 (rename it), is of another kind");
}

TEST_F(ImagesTest, ADamagedFileIsFoundWhenItIsLoaded) {
  file("a/1.png", reference_file("PNG RGB"));
  file("b/2.png", "nothing");
  const ImageData data = open_images(folder_);
  EXPECT_EQ(data.load(0).width, 7);
  EXPECT_EQ(message_of([&] { data.load(1); }).substr(0, 37), "b/2.png: must be a JPEG or PNG file (");
  fs::remove(folder_ / "b/2.png");
  EXPECT_EQ(message_of([&] { data.load(1); }), "b/2.png: cannot be read: No such file or directory");
}

TEST_F(ImagesTest, TestDataTakesTheLabelsOfTheModel) {
  file("test/cat/1.png");
  file("test/ant/2.png");
  file("test/ant/3.png");
  const ImageData data = open_images(folder_ / "test", {"dog", "cat", "ant"});
  EXPECT_EQ(data.label_names(), (Strings{"dog", "cat", "ant"}));
  ASSERT_EQ(data.size(), 3);
  EXPECT_EQ(data.label(0), 2);
  EXPECT_EQ(data.label(2), 1);
  EXPECT_EQ(message_of([&] {
              open_images(folder_ / "test", {"dog", "cat"});
            }),
            "test/ant/2.png: the label must be one that the model knows (\"dog\", \"cat\"), is \"ant\"");

  const fs::path cifar = file("data.bin", cifar_record({"3"}, 0) + cifar_record({"5"}, 0));
  EXPECT_EQ(open_images(cifar, {"5", "3"}).label(0), 1);
  EXPECT_EQ(message_of([&] {
              open_images(cifar, {"0", "3"});
            }),
            "data.bin: record 1: the label must be one that the model knows (\"0\", \"3\"), is \"5\"");
}

TEST_F(ImagesTest, LoadsFromSeveralThreads) {
  const std::vector<std::string> names = {"JPEG 4:2:0", "JPEG, progressive", "PNG RGB, interlaced", "PNG RGB"};
  for (std::size_t i = 0; i < names.size(); ++i)
    file((i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + (i < 2 ? ".jpg" : ".png"), reference_file(names[i]));
  file("b/damaged.jpg", reference_file("JPEG 4:2:0").substr(0, 300));
  const ImageData data = open_images(folder_);
  const std::vector<Image> expected = {data.load(0), data.load(1), data.load(2), data.load(3)};
  std::atomic<int> num_wrong = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const int picture = (i + t) % 5;
        try {
          const Image image = data.load(picture);
          if (picture == 4 || image != expected[static_cast<std::size_t>(picture)]) ++num_wrong;
        } catch (const InvalidInput&) {
          if (picture != 4) ++num_wrong;
        }
      }
    });
  threads.clear();
  EXPECT_EQ(num_wrong, 0);
}

}  // namespace
}  // namespace frostpipe
