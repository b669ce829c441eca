#include "validation/engine/batch_bytes.hpp"

#include <cstring>
#include <type_traits>

#include "core/runtime/error.hpp"

namespace spiked::validation {
namespace {

class Writer {
public:
    template <class Number>
    void add(Number number) {
        static_assert(std::is_arithmetic_v<Number>);
        bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
    }
    void add(std::string_view text) {
        add(std::uint64_t{text.size()});
        bytes.append(text);
    }
    void add(const Quantity& q) {
        add(std::uint64_t{q.method});
        add(std::uint64_t{q.metric});
        add(std::int64_t{q.k});
    }
    std::string bytes;
};

class Reader {
public:
    explicit Reader(std::string_view bytes) : rest_(bytes) {}

    template <class Number>
    [[nodiscard]] Number take() {
        Number number;
        std::memcpy(&number, part(sizeof number).data(), sizeof number);
        return number;
    }
    [[nodiscard]] std::size_t count() { return static_cast<std::size_t>(take<std::uint64_t>()); }
    [[nodiscard]] std::string text() { return std::string(part(count())); }
    [[nodiscard]] Quantity quantity() {
        const std::size_t method = count();
        const std::size_t metric = count();
        return {method, metric, static_cast<int>(take<std::int64_t>())};
    }
    void must_end() const {
        if (!rest_.empty()) throw data_error("a received batch has {} bytes too many", rest_.size());
    }

private:
    std::string_view part(std::size_t size) {
        if (size > rest_.size()) throw data_error("a received batch is truncated");
        const std::string_view found = rest_.substr(0, size);
        rest_.remove_prefix(size);
        return found;
    }
    std::string_view rest_;
};

}  // namespace

std::string batch_bytes(const Batch& batch) {
    Writer to;
    for (const std::uint64_t number :
         {std::uint64_t{batch.cell}, std::uint64_t{batch.number}, batch.first, batch.count})
        to.add(number);
    to.add(batch.seconds);
    to.add(std::uint64_t{batch.failures.size()});
    for (const auto& [replicate, code, message] : batch.failures) {
        to.add(std::uint64_t{replicate});
        to.add(std::string_view(code));
        to.add(std::string_view(message));
    }
    to.add(std::uint64_t{batch.moments.size()});
    for (const auto& [quantity, m] : batch.moments) {
        to.add(quantity);
        to.add(std::uint64_t{m.count});
        to.add(std::uint64_t{m.missing});
        for (const double x : {m.mean, m.m2, m.m3, m.m4, m.low, m.high}) to.add(x);
    }
    to.add(std::uint64_t{batch.values.size()});
    for (const auto& [quantity, replicate, value] : batch.values) {
        to.add(quantity);
        to.add(std::uint64_t{replicate});
        to.add(value);
    }
    to.add(std::uint64_t{batch.arrays.size()});
    for (const auto& [method, name, values] : batch.arrays) {
        to.add(std::uint64_t{method});
        to.add(std::string_view(name));
        to.add(std::uint64_t{values.n_rows});
        to.add(std::uint64_t{values.n_cols});
        for (const double x : values) to.add(x);
    }
    return std::move(to.bytes);
}

Batch batch_from_bytes(std::string_view bytes) {
    Reader from(bytes);
    Batch batch;
    batch.cell = from.count();
    batch.number = from.count();
    batch.first = from.take<std::uint64_t>();
    batch.count = from.take<std::uint64_t>();
    batch.seconds = from.take<double>();
    for (std::size_t left = from.count(); left > 0; --left) {
        const auto replicate = from.take<std::uint64_t>();
        std::string code = from.text();
        batch.failures.push_back({replicate, std::move(code), from.text()});
    }
    for (std::size_t left = from.count(); left > 0; --left) {
        const Quantity quantity = from.quantity();
        Moments m;
        m.count = from.take<std::uint64_t>();
        m.missing = from.take<std::uint64_t>();
        for (double* x : {&m.mean, &m.m2, &m.m3, &m.m4, &m.low, &m.high}) *x = from.take<double>();
        batch.moments.emplace(quantity, m);
    }
    for (std::size_t left = from.count(); left > 0; --left) {
        const Quantity quantity = from.quantity();
        const auto replicate = from.take<std::uint64_t>();
        batch.values.push_back({quantity, replicate, from.take<double>()});
    }
    for (std::size_t left = from.count(); left > 0; --left) {
        NamedArray array;
        array.method = from.count();
        array.name = from.text();
        const std::size_t rows = from.count();
        array.values.set_size(rows, from.count());
        for (double& x : array.values) x = from.take<double>();
        batch.arrays.push_back(std::move(array));
    }
    from.must_end();
    return batch;
}

}  // namespace spiked::validation
