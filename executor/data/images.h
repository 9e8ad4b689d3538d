#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "executor/data/image_files.h"

namespace frostpipe {

/// Labelled pictures, in an order that depends only on their files. Pictures of a folder are decoded on request.
class ImageData {
 public:
  /// `labels` has an index into `label_names` per picture. `load` returns picture i and `place` its location; `load`
  /// must be safe to call from several threads.
  ImageData(std::vector<int> labels, std::vector<std::string> label_names, std::function<Image(int)> load,
            std::function<std::string(int)> place, std::string fingerprint);

  int size() const { return static_cast<int>(labels_.size()); }
  int label(int i) const { return labels_.at(static_cast<std::size_t>(i)); }
  const std::vector<std::string>& label_names() const { return label_names_; }
  /// Returns picture i in its original size. Safe to call from several threads. Throws InvalidInput that names the file
  /// if it is damaged (see decode_image).
  Image load(int i) const;
  /// Returns the location of picture i: its file; for CIFAR file and record, "test_batch.bin: record 7".
  std::string place(int i) const { return place_(i); }
  /// Returns a hash of a CIFAR file's bytes, or of the names and sizes of a folder's pictures (a folder may have too
  /// many to read them all).
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  std::vector<int> labels_;
  std::vector<std::string> label_names_;
  std::function<Image(int)> load_;
  std::function<std::string(int)> place_;
  std::string fingerprint_;
};

/// Opens `path`, which is a folder of labelled pictures or a binary CIFAR file.
///
/// A folder has a sub-folder per label, as for torchvision's ImageFolder, with the label's name and its pictures.
/// - Labels, and the pictures of a label, are in order of their names' bytes.
/// - Pictures are files that end in .jpg, .jpeg or .png, in upper or lower case; a sub-folder may hold nothing else.
/// - Other files beside the sub-folders are ignored, but a picture there has no label and is an error. So is a
///   sub-folder without pictures. Names that begin with a dot are ignored everywhere.
///
/// A CIFAR file is a sequence of records, one per 32 x 32 picture: a label byte (CIFAR-10), or a coarse and a fine one
/// (CIFAR-100), and 3,072 pixels, [channel, height, width].
/// - Records of 3,073 bytes are CIFAR-10, and of 3,074 bytes CIFAR-100, whose fine label is used. If the file's size
///   fits both, the number 10 or 100 in the name of the file or of its folder decides.
/// - Label names are read from batches.meta.txt (CIFAR-10) or fine_label_names.txt (CIFAR-100) beside it; without such
///   a file they are "0", "1" ... All 10 or 100 are label_names, also those without pictures.
///
/// Throws InvalidInput that names the file (for CIFAR also the record, counted from 0), the rule and the value, also
/// for fewer than two labels.
ImageData open_images(const std::filesystem::path& path);

/// Does the same for test data: labels are indices into `label_names`, and any other label is an error. One label is
/// enough.
ImageData open_images(const std::filesystem::path& path, const std::vector<std::string>& label_names);

}  // namespace frostpipe
