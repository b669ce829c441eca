#pragma once
#include "estimators/svd/decomposition_kernels.hpp"

#ifndef SPIKED_KERNEL
#define SPIKED_KERNEL
#endif

/// Products of a large block with a panel. A general matrix product copies both factors, and with so few columns the
/// copy of the block costs as much as half of the operations; here the block is read where it is. Sums are made of
/// parts, so that the block's part and the panel's stay in the L1 cache.
namespace spiked::estimators::kernels {

template <class Pack>
struct PanelProducts {
    using Real = typename Pack::Real;
    using Vector = typename Pack::Vector;
    static constexpr std::size_t width = Pack::width;

    static constexpr std::size_t part = 1024 / sizeof(Real);  ///< rows of the block in a part of V^T C
    static constexpr std::size_t columns_at_once = Pack::many_registers ? 12 : 6;

    /// Adds a part of V^T C: `wide` registers of rows of the product for `count` columns of C.
    template <std::size_t wide, std::size_t count>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void add_part(const PanelProduct<Real>& product,
                                                                             std::size_t from, std::size_t end,
                                                                             std::size_t column, std::size_t row) {
        Vector sum[count][wide];
        Real* const to = product.result + column * product.result_stride + row;
        for (std::size_t c = 0; c < count; ++c)
            for (std::size_t g = 0; g < wide; ++g)
                sum[c][g] = from == 0 ? Pack::set(0) : Pack::load(to + c * product.result_stride + g * width);
        const Real* const block = product.block + column * product.block_stride;
        for (std::size_t i = from; i < end; ++i) {
            Vector along[wide];
            for (std::size_t g = 0; g < wide; ++g)
                along[g] = Pack::load(product.panel + i * product.panel_stride + row + g * width);
            for (std::size_t c = 0; c < count; ++c) {
                const Vector entry = Pack::set(block[c * product.block_stride + i]);
                for (std::size_t g = 0; g < wide; ++g) sum[c][g] = Pack::fma(along[g], entry, sum[c][g]);
            }
        }
        for (std::size_t c = 0; c < count; ++c)
            for (std::size_t g = 0; g < wide; ++g) Pack::store(to + c * product.result_stride + g * width, sum[c][g]);
    }

    template <std::size_t count>
    SPIKED_KERNEL static void add_columns(const PanelProduct<Real>& product, std::size_t from, std::size_t end,
                                          std::size_t column) {
        std::size_t row = 0;
        for (; row + 2 * width <= product.width; row += 2 * width) add_part<2, count>(product, from, end, column, row);
        for (; row < product.width; row += width) add_part<1, count>(product, from, end, column, row);
    }

    SPIKED_KERNEL static void project(const PanelProduct<Real>& product) {
        for (std::size_t from = 0; from < product.rows; from += part) {
            const std::size_t end = from + part < product.rows ? from + part : product.rows;
            std::size_t c = 0;
            for (; c + columns_at_once <= product.columns; c += columns_at_once)
                add_columns<columns_at_once>(product, from, end, c);
            for (; c + 3 <= product.columns; c += 3) add_columns<3>(product, from, end, c);
            for (; c < product.columns; ++c) add_columns<1>(product, from, end, c);
        }
    }

    static constexpr std::size_t inner_part = 512 / sizeof(Real);  ///< columns of the block in a part of D U
    static constexpr std::size_t panel_columns = Pack::many_registers ? 8 : 4;

    /// Adds a part of D U: `high` registers of rows for `panel_columns` columns. The columns of the block for the next
    /// part are prefetched.
    template <std::size_t high, bool first>
    SPIKED_KERNEL static inline __attribute__((always_inline)) void add_inner(const PanelProduct<Real>& product,
                                                                              std::size_t from, std::size_t end,
                                                                              std::size_t row, std::size_t column) {
        Vector sum[panel_columns][high];
        Real* const to = product.result + column * product.result_stride + row;
        for (std::size_t c = 0; c < panel_columns; ++c)
            for (std::size_t g = 0; g < high; ++g)
                sum[c][g] = from == 0 ? Pack::set(0) : Pack::load(to + c * product.result_stride + g * width);
        const Real* const panel = product.panel + column * product.panel_stride;
        for (std::size_t k = from; k < end; ++k) {
            const Real* const block = product.block + k * product.block_stride + row;
            if constexpr (first)
                for (std::size_t g = 0; g < high * width; g += alignment / sizeof(Real))
                    __builtin_prefetch(block + inner_part * product.block_stride + g);
            Vector along[high];
            for (std::size_t g = 0; g < high; ++g) along[g] = Pack::load(block + g * width);
            for (std::size_t c = 0; c < panel_columns; ++c) {
                const Vector entry = Pack::set(panel[c * product.panel_stride + k]);
                for (std::size_t g = 0; g < high; ++g) sum[c][g] = Pack::fma(along[g], entry, sum[c][g]);
            }
        }
        for (std::size_t c = 0; c < panel_columns; ++c)
            for (std::size_t g = 0; g < high; ++g) Pack::store(to + c * product.result_stride + g * width, sum[c][g]);
    }

    template <std::size_t high>
    SPIKED_KERNEL static void multiply_rows(const PanelProduct<Real>& product, std::size_t row) {
        for (std::size_t from = 0; from < product.columns; from += inner_part) {
            const std::size_t end = from + inner_part < product.columns ? from + inner_part : product.columns;
            add_inner<high, true>(product, from, end, row, 0);
            for (std::size_t c = panel_columns; c < product.width; c += panel_columns)
                add_inner<high, false>(product, from, end, row, c);
        }
    }

    SPIKED_KERNEL static void multiply(const PanelProduct<Real>& product) {
        std::size_t row = 0;
        for (; row + 3 * width <= product.rows; row += 3 * width) multiply_rows<3>(product, row);
        for (; row < product.rows; row += width) multiply_rows<1>(product, row);
    }
};

}  // namespace spiked::estimators::kernels
