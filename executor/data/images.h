#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "executor/data/image_files.h"

namespace frostpipe {

/// Labelled pictures in an order that depends on nothing but their files. Those of a folder are decoded when asked for.
class ImageData {
 public:
  /// `labels` has one index into `label_names` per picture. `load` and `place` give those of picture i; `load` must be
  /// safe to call from several threads. `fingerprint`: see below.
  ImageData(std::vector<int> labels, std::vector<std::string> label_names, std::function<Image(int)> load,
            std::function<std::string(int)> place, std::string fingerprint);

  int size() const { return static_cast<int>(labels_.size()); }
  int label(int i) const { return labels_.at(static_cast<std::size_t>(i)); }
  const std::vector<std::string>& label_names() const { return label_names_; }
  /// Picture i in the size that its file has. Safe to call from several threads. Throws InvalidInput that names the
  /// file if it is damaged (see decode_image).
  Image load(int i) const;
  /// Where picture i stands: its file; of CIFAR the file and the record, "test_batch.bin: record 7".
  std::string place(int i) const { return place_(i); }
  /// Of a CIFAR file's bytes; of a folder's pictures, which may be many, their names and sizes.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  std::vector<int> labels_;
  std::vector<std::string> label_names_;
  std::function<Image(int)> load_;
  std::function<std::string(int)> place_;
  std::string fingerprint_;
};

/// Opens what `path` is: a folder of labelled pictures, or a binary file of CIFAR.
///
/// A folder has a sub-folder per label (as torchvision's ImageFolder), which bears its name and holds its pictures.
/// - Labels are in order of their names' bytes, and the pictures of a label in that of theirs.
/// - Pictures are files that end in .jpg, .jpeg or .png, in upper or lower case; nothing else may lie in a sub-folder.
/// - Beside the sub-folders other files are ignored, but a picture there has no label and is an error. So is a
/// sub-folder
///   without pictures. What begins with a dot is ignored everywhere.
///
/// A CIFAR file is a sequence of records, one per picture of 32 x 32: a label (CIFAR-10), or a coarse and a fine one
/// (CIFAR-100), of a byte each, and 3,072 pixels, [channel, height, width].
/// - A file of records of 3,073 bytes is of CIFAR-10, one of 3,074 of CIFAR-100, of which the fine label counts. If its
///   size fits both, the number 10 or 100 in the name of the file or of its folder decides.
/// - Labels are named as in batches.meta.txt (CIFAR-10) or fine_label_names.txt (CIFAR-100) beside it; where there is
/// no
///   such file, "0", "1" ... All 10 or 100 are label_names, also those that no picture has.
///
/// Throws InvalidInput that names the file (of CIFAR also the record, counted from 0), the rule and the value; also for
/// fewer than two labels.
ImageData open_images(const std::filesystem::path& path);

/// The same for data to be tested on: labels are those of `label_names`, in its order, and one outside it is an error.
ImageData open_images(const std::filesystem::path& path, const std::vector<std::string>& label_names);

}  // namespace frostpipe
