#pragma once
#include <armadillo>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/name_options.hpp"
#include "core/text/registry.hpp"
#include "estimators/quantizers/quantizer_options.hpp"
#include "estimators/quantizers/row_quantizer.hpp"

namespace spiked::estimators {

/// An entry of `spiked list quantizers`.
struct QuantizerEntry : RegistryEntry {
    std::string bits_mean;  ///< the meaning of `--bits B` for it
    bool channels =
        false;  ///< rows are neither rotated nor projected, so the error depends on the entries of each channel
    bool fractions = false;                                   ///< bits are a rate from 0.25 to 8, not necessarily whole
    std::vector<unsigned> widths = {1, 2, 3, 4, 5, 6, 7, 8};  ///< the whole numbers of bits that it accepts
};

/// Matrices by their names in test vectors.
using NamedMatrices = std::map<std::string, arma::mat>;

/// A row of the table of row quantizers: its description for users, and the function that makes a quantizer from a
/// name. Each quantizer defines its own in its own file; quantizer_table.cpp lists them.
struct QuantizerFamily {
    QuantizerEntry entry;
    /// `bits` have been checked against the entry.
    RowQuantizer (*make)(const NameOptions& named, std::size_t dimension, double bits, const QuantizerOptions& options);
    /// The number of last tokens of a sequence that are stored in fp16; null: none.
    std::size_t (*tail)(const NameOptions& named, const QuantizerOptions& options, std::size_t tokens) = nullptr;
    /// The matrices and tables that it draws or computes, beside the rotation that the options select; null: none.
    NamedMatrices (*matrices)(const NameOptions& named, std::size_t dimension, double bits,
                              const QuantizerOptions& options) = nullptr;
    /// Whether singular vectors are coded, whose signs and last digits depend on LAPACK.
    bool codes_singular_vectors = false;
};

/// The entries of the table, in its order.
[[nodiscard]] const std::vector<QuantizerEntry>& row_quantizers();

/// The names of the quantizers on which an option of commands has an effect.
[[nodiscard]] std::vector<std::string> quantizers_with(std::string_view option);

/// A row quantizer by its name and the options in it, `tq-prod:projection=gaussian`: parsed once, where a user or a
/// file gives the name, and then passed on in this form.
struct QuantizerSpec {
    std::string text;  ///< as written
    const QuantizerFamily* family = nullptr;
    NameOptions named;

    [[nodiscard]] const QuantizerEntry& entry() const;
    /// Throws usage_error for bits that are not among its widths or, if it accepts fractions, are outside 0.25 to 8.
    void check_bits(double bits) const;
    /// Makes the quantizer for rows of length `dimension`. Throws the errors of check_bits, input_error for rows that
    /// are too long, and usage_error for options that the quantizer does not accept.
    [[nodiscard]] RowQuantizer make(std::size_t dimension, double bits, const QuantizerOptions& options) const;
    /// The number of last tokens of a sequence that are stored in full precision; 0 for most quantizers.
    [[nodiscard]] std::size_t kept_tail(const QuantizerOptions& options, std::size_t tokens) const;
    /// The random or computed matrices that another program needs to read or write the code, without the identity.
    [[nodiscard]] NamedMatrices matrices(std::size_t dimension, double bits, const QuantizerOptions& options) const;
};
/// Whether a name with its options is that of a row quantizer.
[[nodiscard]] bool is_row_quantizer(std::string_view name);
/// Throws usage_error for an unknown name or option, with the nearest.
[[nodiscard]] QuantizerSpec quantizer_spec(std::string_view text);
/// quantizer_spec and make in one step.
[[nodiscard]] RowQuantizer row_quantizer(std::string_view text, std::size_t dimension, double bits,
                                         const QuantizerOptions& options);

}  // namespace spiked::estimators
