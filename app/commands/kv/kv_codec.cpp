#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "app/cli/command.hpp"
#include "app/cli/exit_code.hpp"
#include "app/cli/progress.hpp"
#include "app/options/dump_options.hpp"
#include "app/options/method_options.hpp"
#include "codec/container/kv_decoder.hpp"
#include "codec/container/kv_encoder.hpp"
#include "core/device/device.hpp"
#include "core/files/output_file.hpp"
#include "core/files/text_file.hpp"
#include "core/runtime/error.hpp"
#include "core/runtime/parallel.hpp"
#include "core/text/printable.hpp"
#include "estimators/caches/cache_method.hpp"
#include "estimators/caches/method_name.hpp"
#include "estimators/compressors/golden_vectors.hpp"
#include "estimators/quantizers/groups/kivi.hpp"
#include "reports/tables/kv_report.hpp"
#include "validation/trials/device_trials.hpp"

namespace spiked::app {
namespace {

using estimators::Item;

std::string required_output(const Arguments& arguments, const char* example) {
    if (!arguments.has("--output")) throw usage_error("nowhere to write (-o is missing): add -o {}", example);
    keep_apart(arguments.text("--output"), arguments.positionals.front());
    return arguments.text("--output");
}

Json optional_json(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

Json ledger_bits_json(const estimators::Ledger& ledger) {
    Json json = Json::object();
    for (const auto& item : EnumNames<Item>::table)
        json.set(std::string(item.name), static_cast<std::int64_t>(ledger.bits(item.value)));
    return json;
}

Json as_json(const codec::EncodePlan& plan, const codec::EncodeSummary& found) {
    return Json::object({{"schema", "spiked.encode/1"},
                         {"dump", plan.dump},
                         {"file", plan.output},
                         {"method", plan.method.text},
                         {"bits", bits_json(plan.bits)},
                         {"block", found.block_tokens},
                         {"bytes", found.bytes},
                         {"tensors", found.tensors},
                         {"blocks", found.blocks},
                         {"entries", found.entries},
                         {"device_blocks", found.device_blocks},
                         {"window_tokens", found.window_tokens},
                         {"bits_per_entry", found.bits_per_entry()},
                         {"paper_bits", optional_json(found.paper_bits)},
                         {"mean_rank", optional_json(found.mean_rank)},
                         {"ledger", reports::ledger_json(found.ledger.per_entry(static_cast<double>(found.entries)))},
                         {"ledger_bits", ledger_bits_json(found.ledger)},
                         {"relative_l2", Json::object({{"key", optional_json(found.key_error)},
                                                       {"value", optional_json(found.value_error)}})},
                         {"uncoded", Json::object({{"tensors", found.kept_tensors}, {"bytes", found.kept_bytes}})},
                         {"notes", found.notes}});
}

std::string as_text(const codec::EncodePlan& plan, const codec::EncodeSummary& found) {
    const auto percent = [](const std::optional<double>& value) {
        return value ? fmt::format("{:.4f} %", 100.0 * *value) : std::string("no full block");
    };
    return fmt::format(
        "{} at {} bits: {} -> {}, {}\n{} tensors of keys and values in {} blocks of {} tokens; {} other tensors as "
        "they are, {}\nrelative L2  keys {}, values {}\npaper's bits  {}\n\n{}",
        plan.method.text, plan.bits, plan.dump, plan.output, bytes_text(found.bytes), found.tensors, found.blocks,
        found.block_tokens, found.kept_tensors, bytes_text(found.kept_bytes), percent(found.key_error),
        percent(found.value_error), found.paper_bits ? fmt::format("{:.4f}", *found.paper_bits) : "none",
        reports::ledger_text(found.ledger.per_entry(static_cast<double>(found.entries))));
}

/// Advice for a method that kernels would code but for its last tokens.
std::string way_to_kernels(const codec::EncodePlan& plan) {
    const auto kivi = plan.cache ? std::nullopt : estimators::kivi_options(plan.method.quantizer, plan.quantizer);
    if (!kivi || kivi->residual == 0) return "";
    const bool in_the_name = plan.method.quantizer.named.has_option("residual");
    return fmt::format("; {} keeps the last {} tokens: {} keeps none", plan.method.text, kivi->residual,
                       in_the_name ? "residual=0" : "--residual 0");
}

int encode(const Arguments& arguments) {
    codec::EncodePlan plan;
    plan.dump = arguments.positionals.front();
    plan.output = required_output(arguments, "dump.spkv");
    const std::string method = one_method(arguments);
    plan.cache = estimators::causal_cache(method);
    if (plan.cache)
        plan.method.text = method;
    else
        plan.method = estimators::method_named(method, estimators::and_causal_caches());
    reject_unused_options(arguments, {plan.cache ? used_by(*plan.cache) : used_by(plan.method)});
    reject_unused_seed(arguments, method, !plan.cache && estimators::draws_random_numbers(plan.method));
    plan.bits = arguments.number("--bits");
    plan.block_tokens = arguments.count("--block");
    plan.threads = arguments.count("--threads");
    plan.dump_options = read_dump_options(arguments);
    plan.quantizer = read_quantizer_options(arguments);
    plan.quantizer.residual = arguments.count("--residual");
    if (plan.cache && arguments.has("--block"))
        throw usage_error("--block has no effect on {} (it codes whole sequences): leave it out", method);
    spiked::cuda::Device device = spiked::cuda::choose_device(arguments.text("--device"));
    device.report = [&arguments](const std::string& text) { print_note(arguments, text); };
    if (!device.note.empty()) print_note(arguments, device.note);
    if (device.backend != spiked::cuda::Backend::cpu)
        plan.coder = std::make_shared<validation::DeviceBlockCoder>(device, thread_count(plan.threads));
    ProgressDisplay display(arguments, "blocks");
    plan.progress = [&](std::uint64_t done, std::uint64_t total) { display.show(done, total); };
    const auto found = codec::encode_dump(plan);
    if (plan.coder && found.device_blocks < found.blocks)
        print_note(
            arguments,
            fmt::format("{} of {} blocks were coded on the CPU (kernels code by {}, alone or after an estimator, "
                        "numbers in fp16, no token kept in full{})",
                        found.blocks - found.device_blocks, found.blocks,
                        fmt::join(validation::quantizers_with_kernels(), ", "), way_to_kernels(plan)));
    for (const auto& note : found.notes) print_note(arguments, note);
    if (arguments.json())
        print_json(as_json(plan, found));
    else
        print_text(as_text(plan, found));
    return 0;
}

int decode(const Arguments& arguments) {
    const std::string& file = arguments.positionals.front();
    const std::string output = required_output(arguments, "dump.safetensors");
    require_dump_name(output);
    ProgressDisplay display(arguments, "blocks");
    const auto found =
        codec::decode_container(file, output, arguments.count("--threads"),
                                [&](std::uint64_t done, std::uint64_t total) { display.show(done, total); });
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.decode/1"},
                                 {"file", file},
                                 {"dump", output},
                                 {"method", found.method},
                                 {"bits", bits_json(found.bits)},
                                 {"bytes", found.bytes},
                                 {"tensors", found.tensors},
                                 {"blocks", found.blocks}}));
    else
        print_text(fmt::format("{} -> {}: {} at {} bits, {} tensors, {} blocks, {}\n", file, output,
                               printable(found.method), found.bits, found.tensors, found.blocks,
                               bytes_text(found.bytes)));
    return 0;
}

constexpr std::uint64_t most_golden_bytes = 1 << 24;

int golden(const Arguments& arguments) {
    if (!arguments.has("--write") && !arguments.has("--verify"))
        throw usage_error(
            "kv golden: no file is given (it is written, or verified): add --write FILE or --verify FILE");
    const bool writes = arguments.has("--write");
    const std::string path = arguments.text(writes ? "--write" : "--verify");
    std::size_t count = 0;
    std::optional<std::string> difference;
    if (writes) {
        const Json document = estimators::golden_vectors();
        count = document.find("vectors")->items()->size();
        write_file(path, estimators::golden_text(document));
    } else {
        const Json given = Json::parse(read_text_file(path, most_golden_bytes, "a set of test vectors"), path);
        difference = estimators::golden_difference(given, path);
        count = given.find("vectors")->items()->size();
    }
    const char* verdict = writes ? "written" : difference ? "differs" : "agrees";
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.golden-check/1"},
                                 {"file", path},
                                 {"vectors", count},
                                 {"verdict", verdict},
                                 {"difference", difference ? Json(*difference) : Json()}}));
    else
        print_text(
            fmt::format("{}: {} test vectors, {}\n{}Their blocks and random numbers are fixed: a difference is not "
                        "due to chance.\n",
                        path, count, verdict, difference ? *difference + "\n" : std::string()));
    return difference ? static_cast<int>(ExitCode::check_failed) : 0;
}

}  // namespace

Command kv_encode_command() {
    std::vector<OptionSpec> options = {
        {"-o,--output", file_with({".spkv"}), "the coded dump to write"},
        {"--method", names_from({"quantizers", "caches"}, any_text("NAME")),
         "method: a quantizer, an estimator and a quantizer, causal-klt or causal-klt-joint; spiked list shows all",
         "tq-mse"},
        bits_option("4", estimators::and_causal_caches()),
        block_option("tokens in a block; last tokens that do not fill a block stay in fp16"),
        residual_option(),
        threads_option("the file does"),
        device_option(
            fmt::format(
                "device that codes the blocks of the methods with kernels: {}, alone or after an estimator, in float",
                fmt::join(validation::quantizers_with_kernels(), ", ")),
            "cpu"),
    };
    options.insert(options.begin() + 4, storage_options().begin(), storage_options().end());
    options.insert(options.begin() + 4, token_options().begin(), token_options().end());
    options = joined({options, quantizer_options()});
    return {"kv encode",
            "compress the keys and values of a dump into one file, with an account of every bit",
            {"spiked kv encode dump.safetensors -o dump.spkv --method tq-mse --bits 4",
             "spiked kv encode dump.safetensors -o dump.spkv --method unrope+svd:rd+tcq --bits 2",
             "spiked kv encode dump.npz -o dump.spkv --method kivi --bits 2 --group 32 --layout head,token,dim",
             "spiked kv encode dump.safetensors -o dump.spkv --method causal-klt --bits 2.5"},
            dump_value("DUMP"),
            1,
            1,
            options,
            encode};
}

Command kv_decode_command() {
    return {"kv decode",
            "decode a coded file into a dump with the original names, dtypes and metadata",
            {"spiked kv decode dump.spkv -o back.safetensors", "spiked kv decode dump.spkv -o back.safetensors --json"},
            file_with({".spkv"}, "FILE.spkv"),
            1,
            1,
            {{"-o,--output", file_with({".safetensors"}, "DUMP.safetensors"), "the dump to write"},
             threads_option("the file does")},
            decode};
}

Command kv_golden_command() {
    return {"kv golden",
            "test vectors of every method, to check other implementations: write them, or verify a file of them",
            {"spiked kv golden --write golden.json", "spiked kv golden --verify golden.json"},
            {},
            0,
            0,
            {{.key = "--write",
              .value = file_with({".json"}),
              .help = "write the test vectors",
              .excludes = {{"--verify"}, "one writes a file, the other reads it"}},
             {"--verify", file_with({".json"}), "compute them again and compare; exit 1 names the first that differs"}},
            golden};
}

}  // namespace spiked::app
