#include <fmt/format.h>

#include "app/cli/command.hpp"
#include "app/options/dump_options.hpp"
#include "app/options/matrix_options.hpp"
#include "app/options/method_options.hpp"
#include "core/runtime/error.hpp"
#include "estimators/caches/method_name.hpp"
#include "estimators/compressors/relative_error.hpp"
#include "reports/tables/kv_report.hpp"
#include "reports/tables/text_table.hpp"
#include "sim/io/matrix_file.hpp"
#include "sim/io/table.hpp"
#include "sim/preparation/preparation.hpp"

namespace spiked::app {
namespace {

/// The matrix that is coded, and notes on it.
sim::NotedMatrix read_prepared(const Arguments& arguments, const std::string& file) {
    const sim::Preparation preparation = read_preparation(arguments);
    sim::NotedMatrix read = sim::read_noted_matrix(file, read_matrix_options(arguments));
    std::vector<std::string> notes = std::move(read.notes);
    const auto add = [&](const std::vector<std::string>& more) { notes.insert(notes.end(), more.begin(), more.end()); };
    sim::NoteContext context{read.of_text, std::nullopt};
    if (preparation.empty()) context.largest_value = sim::largest_value_of_means(read.matrix);
    add(sim::data_notes(read.matrix, context));
    sim::NotedMatrix ready = located([&] { return file; }, [&] { return sim::prepared(read.matrix, preparation); });
    add(ready.notes);
    const arma::uword zero_rows = arma::accu(arma::all(ready.matrix == 0.0, 1));
    if (zero_rows > 0)
        notes.push_back(fmt::format("{}: {} in the bits and the error", reports::counted(zero_rows, "zero row"),
                                    zero_rows == 1 ? "it counts" : "they count"));
    if (!preparation.empty()) notes.emplace_back("the error, and the decoded matrix, are those of the prepared matrix");
    return {std::move(ready.matrix), std::move(notes)};
}

int run_quantize(const Arguments& arguments) {
    const estimators::MethodSpec method = estimators::method_named(one_method(arguments));
    estimators::reject_unrope(method);
    reject_unused_options(arguments, {used_by(method)});
    reject_unused_seed(arguments, method.text, estimators::draws_random_numbers(method));
    const double bits = arguments.number("--bits");
    auto options = read_quantizer_options(arguments);
    options.axis = estimators::group_axis(arguments.text("--axis"));
    options.residual = arguments.count("--residual");
    if (method.centred && options.axis != estimators::GroupAxis::key)
        throw usage_error("\"{}\" stores means of the columns of keys (the axis is {}): add --axis key", method.text,
                          arguments.text("--axis"));
    const std::string& file = arguments.positionals.front();
    keep_apart(arguments.text("--output"), file);
    sim::require_matrix_name(arguments.text("--output"));

    method.quantizer.check_bits(bits);

    // From here on, errors are due to the file, and their messages name it.
    const auto of_file = [&] { return file; };
    sim::NotedMatrix read = read_prepared(arguments, file);
    for (const auto& note : read.notes) print_note(arguments, note);
    estimators::AnalysedBlock block(std::move(read.matrix));
    const auto compressor =
        located(of_file, [&] { return estimators::Compressor(method, block.block().n_cols, bits, options); });
    const auto [encoded, rank] = located(of_file, [&] { return compressor.encode(block); });
    const arma::mat decoded = compressor.decode(encoded.bytes, block.block().n_rows);
    if (arguments.has("--output")) sim::write_matrix(arguments.text("--output"), decoded);

    const double entries = static_cast<double>(decoded.n_elem);
    const double relative_l2 = estimators::relative_l2(block.block(), decoded);
    const double bits_per_entry = static_cast<double>(encoded.ledger.total()) / entries;
    const double paper_bits = compressor.paper_bits(rank, decoded.n_rows);
    const auto ledger = encoded.ledger.per_entry(entries);

    if (arguments.json()) {
        const sim::Preparation preparation = read_preparation(arguments);
        print_json(Json::object({{"schema", "spiked.quantize/1"},
                                 {"method", method.text},
                                 {"bits", bits_json(bits)},
                                 {"bits_per_entry", bits_per_entry},
                                 {"paper_bits", paper_bits},
                                 {"bytes", encoded.bytes.size()},
                                 {"rank", rank},
                                 {"ledger", reports::ledger_json(ledger)},
                                 {"relative_l2", relative_l2},
                                 {"centered", enum_name(preparation.centered())},
                                 {"standardized", enum_name(preparation.standardize)},
                                 {"notes", read.notes}}));
        return 0;
    }
    print_text(fmt::format(
        "{} at {} bits on {}: {} x {}, rank {}, {} bytes\nrelative L2  {:.4f} %\npaper's bits  {:.4f}\n\n{}",
        method.text, bits, file, decoded.n_rows, decoded.n_cols, rank, encoded.bytes.size(), 100.0 * relative_l2,
        paper_bits, reports::ledger_text(ledger)));
    return 0;
}

}  // namespace

Command quantize_command() {
    std::vector<OptionSpec> options = {
        {"--method", names_from({"quantizers", "caches"}, any_text("NAME")),
         "method: a quantizer, or an estimator and a quantizer; spiked list shows all", "tq-mse"},
        bits_option("4"),
        command_option("--axis"),
        command_option("--residual"),
        {"-o,--output", file_with({".npy", ".csv"}, "FILE.npy|FILE.csv"), "write the decoded matrix"},
    };
    options = joined({options, quantizer_options(), preparation_options(), matrix_options()});
    return {"quantize",
            "compress one matrix, count its bits, measure its error",
            {"spiked quantize data.npy --method tq-mse --bits 2",
             "spiked quantize data.npz:x --method eoptshrink+tq-mse --bits 3 -o back.npy",
             "spiked quantize dump.safetensors:layers.0.key:1 --method svd:1+tq-mse --json"},
            matrix_value(),
            1,
            1,
            options,
            run_quantize};
}

}  // namespace spiked::app
