#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace frostpipe {

/// Labelled texts for classification, in the order of their file.
struct TextData {
  std::vector<std::string> texts;
  /// One per text: an index into label_names.
  std::vector<int> labels;
  std::vector<std::string> label_names;

  bool operator==(const TextData&) const = default;
};

/// Reads tab-separated text with a header line, as GLUE's train.tsv.
///
/// - The header names one column `text` (or `sentence`) and one `label`, in any order; further columns are ignored.
/// - Every row has exactly the header's number of fields: a field cannot hold a tab. Quotes and backslashes are
///   characters like others.
/// - Lines end in LF or CRLF. A UTF-8 byte order mark and empty lines at the end are skipped. A text may be empty, a
///   label not.
/// - label_names are the distinct labels: in numeric order if all are integers, else in order of their bytes.
///
/// Throws InvalidInput that names file, line, rule and value; also for a file without rows or with fewer than two
/// labels.
TextData read_tsv(const std::filesystem::path& path);

/// The same for data to be evaluated: labels are those of `label_names`, in its order, and one outside it is an error.
TextData read_tsv(const std::filesystem::path& path, const std::vector<std::string>& label_names);

}  // namespace frostpipe
