#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/io/tensor_container.hpp"
#include "sim/kv/cache_layout.hpp"

namespace spiked::sim {

/// The place in the cache that the name of a tensor states.
struct NamedPlace {
    std::size_t index = 0;  ///< in the file's list of tensors
    std::optional<Side> side;
    std::optional<std::size_t> layer;
    std::optional<std::size_t> head;
    std::size_t chunk = 0;  ///< chunks hold consecutive tokens
};

/// A pattern for names of tensors, with {layer}, {side}, {head} and {chunk} at most once each. {side} stands for
/// key|value|query or, when no tensor has such a name, for keys|values|queries, k|v|q, K|V|Q or 0|1.
class NamePattern {
public:
    /// Throws usage_error for a pattern without marks' braces closed, with another mark, or with one twice.
    explicit NamePattern(const std::string& pattern);

    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] bool has_side() const { return has(Mark::side); }
    [[nodiscard]] bool has_head() const { return has(Mark::head); }
    [[nodiscard]] bool has_chunk() const { return has(Mark::chunk); }
    /// The tensors whose names match, in file order. The sides of all are written in the same way. Where no {layer}
    /// counts layers, 0 and 1 are no sides if there are tensors numbered 2 and on.
    [[nodiscard]] std::vector<NamedPlace> matches(const std::vector<StoredTensor>& tensors) const;
    /// Whether the name has a 0 or a 1 where this pattern without {layer} has the side, which may be numbers of layers.
    [[nodiscard]] bool may_count_layers(const std::string& name) const;

private:
    enum class Mark { text, layer, side, head, chunk };
    struct Part {
        Mark mark = Mark::text;
        std::string text;
    };
    [[nodiscard]] bool has(Mark mark) const;
    /// The pattern with {layer} in place of {side}.
    [[nodiscard]] NamePattern counted() const;
    [[nodiscard]] bool matches(std::string_view name, std::size_t part, std::size_t spelling, NamedPlace& place) const;

    std::string text_;
    std::vector<Part> parts_;
};

/// The number behind `layer` or `layers` in the name of a file of one layer, as vLLM's example connector names it;
/// 0 where there is none.
[[nodiscard]] std::size_t layer_of_file(const std::string& path);

}  // namespace spiked::sim
