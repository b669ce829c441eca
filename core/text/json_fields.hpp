#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "core/runtime/error.hpp"
#include "core/text/json.hpp"

namespace spiked {

/// The members of a JSON object in a file of Spiked's own, with checks of their types and ranges. Each function throws
/// input_error for a member that is missing or of another type: `where`, the problem, and that the file is damaged,
/// forged or written by a newer program. Other members are ignored.
class JsonFields {
public:
    /// `json` must outlive this object. Throws input_error when it is not an object.
    JsonFields(const Json& json, std::string where);

    [[noreturn]] void reject(const std::string& problem) const;

    [[nodiscard]] const Json& member(const std::string& key) const;
    [[nodiscard]] const std::string& text(const std::string& key) const;
    [[nodiscard]] std::size_t number(const std::string& key, std::int64_t least = 0,
                                     std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
    [[nodiscard]] double real(const std::string& key) const;
    [[nodiscard]] bool boolean(const std::string& key) const;
    [[nodiscard]] const Json::Array& items(const std::string& key) const;

    /// Runs a parser that throws usage_error for names a user gives. Here the names come from the file, so its errors
    /// become input_errors about the file.
    template <class Parser>
    auto parsed(Parser parser) const {
        try {
            return parser();
        } catch (const Error& error) {
            reject(std::string("is not usable (") + error.what() + ")");
        }
    }

private:
    const Json& json_;
    std::string where_;
};

}  // namespace spiked
