#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/kv/dump_tensors.hpp"

namespace spiked::sim {

/// Why a tensor cannot belong to the cache: an error about it, without the path of the file.
struct Unfit {
    std::string reason;
    template <class... Values>
    explicit Unfit(fmt::format_string<Values...> text, Values&&... values)
        : reason(fmt::format(text, std::forward<Values>(values)...)) {}
};

/// A part with the name that it came from, before parts are joined to a tensor.
struct NamedPart {
    std::size_t chunk = 0;
    std::size_t head = 0;
    std::string name;
    DType dtype = DType::f16;
    StoredPart part;
};

/// The tensor of one layer and side: heads of several tensors, then chunks of tokens. Sorts the parts. `has_heads`: the
/// names of the stored tensors number their heads. Throws input_error, which names `path` and the tensors, for parts
/// that are missing, stored twice, or of different sizes.
[[nodiscard]] DumpTensor join_parts(const std::string& path, std::size_t layer, Side side, bool has_heads,
                                    std::vector<NamedPart>& parts);

/// Layers whose keys and values differ in heads or tokens.
struct UnequalLayers {
    std::set<std::size_t> layers;
    std::vector<std::string> names;  ///< of their tensors
    std::set<std::size_t> indexes;   ///< of the stored tensors that hold nothing else
    std::string reason;              ///< of the first
};
/// Takes such layers out of `tensors`, in which values follow the keys of their layer.
[[nodiscard]] UnequalLayers take_unequal_layers(std::vector<DumpTensor>& tensors, const std::string& layout);

}  // namespace spiked::sim
