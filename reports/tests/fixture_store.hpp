#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <armadillo>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/sha256.hpp"
#include "validation/statistics/moments.hpp"
#include "validation/store/sqlite.hpp"

namespace spiked::reports {

inline std::string file_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

inline std::size_t occurrences(const std::string& text, const std::string& what) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++count;
    return count;
}

inline bool has(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

/// A temporary folder, removed at the end of the test.
class Scratch {
public:
    Scratch() {
        std::string pattern = (std::filesystem::temp_directory_path() / "spiked-test-XXXXXX").string();
        folder_ = mkdtemp(pattern.data());
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { std::filesystem::remove_all(folder_); }
    [[nodiscard]] std::string operator/(const std::string& name) const { return (folder_ / name).string(); }

private:
    std::filesystem::path folder_;
};

/// A matrix as the bytes of a .npy file: version 1, float64, Fortran order.
inline std::vector<std::uint8_t> npy_bytes(const arma::mat& matrix) {
    std::string header =
        fmt::format("{{'descr': '<f8', 'fortran_order': True, 'shape': ({}, {}), }}", matrix.n_rows, matrix.n_cols);
    header += std::string(63 - (header.size() + 10) % 64, ' ') + "\n";
    std::string bytes = "\x93NUMPY\x01";
    bytes.push_back('\0');
    bytes.push_back(static_cast<char>(header.size() & 0xFF));
    bytes.push_back(static_cast<char>(header.size() >> 8));
    bytes += header;
    bytes.append(reinterpret_cast<const char*>(matrix.memptr()), matrix.n_elem * sizeof(double));
    return {bytes.begin(), bytes.end()};
}

/// A store with the schema of validation/ and rows inserted by the test.
class FixtureStore {
public:
    FixtureStore(const std::string& path, const std::string& kind, const std::string& name = "bbp-square",
                 const std::string& status = "complete")
        : database(path, validation::Database::Mode::create) {
        database.execute("BEGIN");
        database.execute(file_text(SPIKED_SOURCE_DIR "/validation/store/store_schema.sql"));
        database.execute("PRAGMA application_id = 1397771057; PRAGMA user_version = 4");
        const std::string settings = R"({"spiked":1})";
        validation::Statement study(
            database,
            "INSERT INTO study(id, name, title, kind, config_source, config_resolved, science_hash, seed, seed_source, "
            "false_alarm, backend, status, created_utc, batch_reps, failure_budget) "
            "VALUES(1,?,?,?,?,?,?,'0x5eed07','config',1e-6,'cpu',?,'2025-01-02T03:04:05Z',50,0.01)");
        study.bind(1, name).bind(2, name == "bbp-square" ? "Recovery across the threshold" : name).bind(3, kind);
        study.bind(4, "spiked = 1\n[study]\nname = \"" + name + "\"\n")
            .bind(5, settings)
            .bind(6, hex(sha256(settings)))
            .bind(7, status)
            .run();
        database.execute(
            "INSERT INTO session VALUES(1,'2025-01-02T03:04:05Z','2025-01-02T03:04:25Z',0,NULL,'spiked run "
            "study.toml','host',12,2,'cpu',"
            "'{\"version\":\"0.1.0\",\"commit\":\"abc123\",\"libraries\":{\"fmt\":\"9.1.0\"}}')");
    }

    void finish() { database.execute("COMMIT"); }

    std::int64_t method(const std::string& name, const std::string& kind, const std::string& base, int bits = 0) {
        validation::Statement insert(database, "INSERT INTO method VALUES(NULL,?,?,?,?,'{}')");
        insert.bind(1, name).bind(2, kind).bind(3, base);
        if (bits > 0) insert.bind(4, bits);
        insert.run();
        return database.integer("SELECT last_insert_rowid()");
    }

    std::int64_t metric(const std::string& name) {
        validation::Statement find(database, "SELECT metric_id FROM metric WHERE name = ?1");
        find.bind(1, name);
        if (find.step()) return find.integer(0);
        validation::Statement insert(database, "INSERT INTO metric VALUES(NULL,?,'share','none',?)");
        insert.bind(1, name).bind(2, "what " + name + " is").run();
        return database.integer("SELECT last_insert_rowid()");
    }

    std::int64_t cell(const std::string& label, int n, int d, int reps = 100, const std::string& state = "done") {
        validation::Statement insert(database,
                                     "INSERT INTO cell(cell_hash, label, n, d, params, reps_least, reps_target, state) "
                                     "VALUES(?,?,?,?,'{}',?5,?5,?)");
        insert.bind(1, fmt::format("{:064x}", ++hashes_))
            .bind(2, label)
            .bind(3, n)
            .bind(4, d)
            .bind(5, reps)
            .bind(6, state)
            .run();
        const auto id = database.integer("SELECT last_insert_rowid()");
        validation::Statement batch(database, "INSERT INTO batch VALUES(?,0,0,?,0,1,0.5,'x')");
        batch.bind(1, id).bind(2, state == "done" ? reps : reps / 2).run();
        return id;
    }

    void factor(std::int64_t cell, const std::string& name, const std::string& text, double number = std::nan("")) {
        validation::Statement insert(database, "INSERT INTO factor VALUES(?,?,?,?)");
        insert.bind(1, cell).bind(2, name).bind_real(3, number).bind(4, text).run();
    }
    void factor(std::int64_t cell, const std::string& name, double number) {
        factor(cell, name, fmt::format("{:g}", number), number);
    }

    /// Moments of `count` replicates in two batches, with this mean and the standard error `error` of the mean.
    void moment(std::int64_t cell, std::int64_t method, const std::string& name, int k, double mean, double error,
                int count = 100) {
        for (int batch = 0; batch < 2; ++batch) {
            const double half = count / 2.0;
            validation::Statement insert(database, "INSERT INTO moment VALUES(?,?,?,?,?,?,0,?,?,0,0,?,?)");
            insert.bind(1, cell).bind(2, batch).bind(3, method).bind(4, metric(name)).bind(5, k).bind(6, count / 2);
            insert.bind_real(7, mean).bind_real(8, error * error * count * (count - 1) * half / count);
            insert.bind_real(9, mean - 3 * error).bind_real(10, mean + 3 * error).run();
        }
    }

    /// The moments of one batch.
    void moments(std::int64_t cell, std::int64_t batch, std::int64_t method, const std::string& name, int k,
                 const validation::Moments& batch_moments) {
        validation::Statement insert(database, "INSERT INTO moment VALUES(?,?,?,?,?,?,0,?,?,?,?,?,?)");
        insert.bind(1, cell).bind(2, batch).bind(3, method).bind(4, metric(name)).bind(5, k);
        insert.bind(6, static_cast<std::int64_t>(batch_moments.count))
            .bind_real(7, batch_moments.mean)
            .bind_real(8, batch_moments.m2);
        insert.bind_real(9, batch_moments.m3)
            .bind_real(10, batch_moments.m4)
            .bind_real(11, batch_moments.low)
            .bind_real(12, batch_moments.high)
            .run();
    }

    void theory(std::int64_t cell, const std::string& quantity, int k, double value) {
        validation::Statement insert(database, "INSERT INTO theory VALUES(?,?,?,?,1e-12,'law')");
        insert.bind(1, cell).bind(2, quantity).bind(3, k).bind_real(4, value).run();
    }

    void claim(const std::string& id) {
        validation::Statement insert(
            database,
            "INSERT OR IGNORE INTO claim VALUES(?,'Section 3','what ' || ?1 || ' states','a planted defect')");
        insert.bind(1, id).run();
    }

    void verdict(std::int64_t cell, std::int64_t method, const std::string& metric, int k, double estimate,
                 double error, double expected, double margin, const std::string& verdict,
                 const std::string& control = "fail") {
        claim(metric);
        validation::Statement insert(
            database,
            "INSERT INTO verdict VALUES(NULL,?1,?1,?2,?3,?1,?4,?5,?6,?7,?8,?9,?10,1e-7,0.031,100,4000,?11,0.9,?12,'',"
            "?7 - ?8,?7 + ?8,NULL)");
        insert.bind(1, metric)
            .bind(2, cell)
            .bind(3, method)
            .bind(4, k)
            .bind_real(5, estimate)
            .bind_real(6, error)
            .bind_real(7, expected);
        insert.bind_real(8, margin)
            .bind_real(9, estimate - 5 * error)
            .bind_real(10, estimate + 5 * error)
            .bind(11, verdict)
            .bind(12, control)
            .run();
    }

    void array(std::int64_t cell, std::int64_t method, const std::string& name, const arma::mat& values) {
        validation::Statement insert(database, "INSERT INTO array VALUES(?,0,?,?,?)");
        insert.bind(1, cell).bind(2, method).bind(3, name).bind_blob(4, npy_bytes(values)).run();
    }

    validation::Database database;

private:
    int hashes_ = 0;
};

/// A study with strengths across the threshold, two shapes, white and coloured noise, estimators, codecs and checks.
inline void make_study(const std::string& path, const std::string& name = "bbp-square",
                       const std::string& status = "complete") {
    FixtureStore store(path, "spiked", name, status);
    const auto sample = store.method("sample", "sample", "sample");
    const auto estimator = store.method("eoptshrink", "estimator", "eoptshrink");
    const auto codec2 = store.method("tq-mse@2", "codec", "tq-mse", 2);
    const auto codec3 = store.method("tq-mse@3", "codec", "tq-mse", 3);
    std::mt19937 random(7);
    std::normal_distribution<double> normal;
    for (const auto& [n, d] : {std::pair{128, 128}, std::pair{64, 128}})
        for (const double rho : {0.0, 0.4})
            for (const double strength : {0.5, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0}) {
                const auto cell = store.cell(fmt::format("{}x{} rho={} d/a={}", n, d, rho, strength), n, d);
                store.factor(cell, "n", n);
                store.factor(cell, "d", d);
                store.factor(cell, "noise.row_cov.rho", rho);
                store.factor(cell, "signal.strength", strength);
                const double x = strength * strength;
                const double left = strength > 1 ? (1 - 1 / (x * x)) / (1 + (0.3 * rho + 128.0 / n - 0.5) / x) : 0.0;
                const double right = strength > 1 ? (1 - 1 / (x * x)) / (1 + 1 / x) : 0.0;
                const double outlier = (strength > 1 ? (1 + x) * (1 + 1 / x) : 4.0) * (1 + rho);
                int k = 1;
                for (const auto& [metric, theory, error] :
                     {std::tuple{"overlap.left", left, 0.006}, std::tuple{"overlap.right", right, 0.005},
                      std::tuple{"outlier", outlier, 0.02}}) {
                    const double finite = strength <= 1 && metric[0] == 'o' && metric[1] == 'v' ? 0.04 * strength : 0.0;
                    const double mean = theory + finite + error * normal(random);
                    store.moment(cell, sample, metric, k, mean, error);
                    store.theory(cell, metric, k, theory);
                    if (strength > 1.1)
                        store.verdict(cell, sample, metric, k, mean, error, theory, strength < 1.3 ? 0.01 : 0.06,
                                      strength < 1.3 ? "inconclusive" : "pass");
                }
                store.moment(cell, estimator, "rank", 0, strength > 1.1 ? 1 : 0.19, 0.01);
                store.moment(cell, estimator, "relative_error", 0, 1 / (1 + x), 0.004);
                int bits = 2;
                for (const auto codec : {codec2, codec3}) {
                    const double distortion = bits == 2 ? 0.1172 : 0.0343;
                    store.moment(cell, codec, "distortion", 0, distortion * 1.001, 1e-5);
                    store.moment(cell, codec, "relative_l2", 0, std::sqrt(distortion), 1e-4);
                    store.moment(cell, codec, "bits_per_entry", 0, bits + 0.125, 0);
                    store.moment(cell, codec, "bits.indices", 0, bits, 0);
                    store.moment(cell, codec, "bits.norms", 0, 0.125, 0);
                    store.moment(cell, codec, "bits.header", 0, 0, 0);
                    store.verdict(cell, codec, "distortion", 0, distortion * 1.001, 1e-5, distortion, 0.002, "pass");
                    ++bits;
                }
            }
    store.finish();
}

/// A dump study with layers and heads of keys and values, and with the arrays of two blocks.
inline void make_dump_store(const std::string& path, int layers = 4, int heads = 4) {
    FixtureStore store(path, "kv_dump", "kv-run");
    store.database.execute("INSERT INTO input VALUES(1,'dumps/a.safetensors',123456,'" + std::string(64, 'b') +
                           "','safetensors','head,token,dim','rope-lm','{}')");
    const auto sample = store.method("sample", "sample", "sample");
    struct Codec {
        std::int64_t id;
        int bits;
        bool low_rank;
    };
    std::vector<Codec> codecs;
    for (const bool low_rank : {false, true})
        for (const int bits : {2, 3, 4}) {
            const std::string base = low_rank ? "eoptshrink+tq-mse" : "tq-mse";
            codecs.push_back({store.method(fmt::format("{}@{}", base, bits), "codec", base, bits), bits, low_rank});
        }
    std::mt19937 random(11);
    std::normal_distribution<double> normal;
    for (int layer = 0; layer < layers; ++layer)
        for (const std::string side : {"key", "value"})
            for (int head = 0; head < heads; ++head) {
                const auto cell = store.cell(fmt::format("a.safetensors L{}H{} {}", layer, head, side), 128, 128, 10);
                store.factor(cell, "file", "a.safetensors");
                store.factor(cell, "model", "rope-lm");
                store.factor(cell, "side", side);
                store.factor(cell, "layer", layer);
                store.factor(cell, "head", head);
                store.factor(cell, "cluster", fmt::format("L{}H{}", layer, head));
                for (const auto& codec : codecs) {
                    const double rank = codec.low_rank ? std::max(0.0, 3.0 + layer - 0.5 * head + normal(random)) : 0.0;
                    const double l2 =
                        std::pow(2.0, -codec.bits) * (codec.low_rank ? 1.1 : 1.37) * (1 + 0.03 * normal(random));
                    store.moment(cell, codec.id, "rank", 0, rank, codec.low_rank ? 0.1 : 0.0, 10);
                    store.moment(cell, codec.id, "relative_l2", 0, l2, 0.002, 10);
                    store.moment(cell, codec.id, "ip_bias", 0, 0.001 * normal(random), 0.0004, 10);
                    store.moment(cell, codec.id, "ip_std", 0, 0.1 * l2, 0.0004, 10);
                    store.moment(cell, codec.id, "ip_bias_plain", 0, 0.002 * normal(random), 0.0004, 10);
                    store.moment(cell, codec.id, "ip_std_plain", 0, 0.11 * l2, 0.0004, 10);
                    store.moment(cell, codec.id, "paper_bits", 0, codec.bits + rank / 16, 0, 10);
                    store.moment(cell, codec.id, "bits_per_entry", 0, codec.bits + 0.125 + rank / 16, 0, 10);
                    store.moment(cell, codec.id, "bits.indices", 0, codec.bits, 0, 10);
                    store.moment(cell, codec.id, "bits.norms", 0, 0.125, 0, 10);
                    store.moment(cell, codec.id, "bits.factor_indices", 0, rank / 16, 0, 10);
                }
                if (layer == 1 && head == 2) {
                    arma::mat noise(128, 128);
                    for (auto& x : noise) x = normal(random) / std::sqrt(128.0);
                    arma::mat signal(128, 128, arma::fill::zeros);
                    for (int r = 0; r < 4; ++r) {
                        arma::vec u(128);
                        arma::vec v(128);
                        for (auto& x : u) x = normal(random) + 1.0;
                        for (auto& x : v) x = std::pow(normal(random), 3);
                        signal += (9.0 - 1.5 * r) * arma::normalise(u) * arma::normalise(v).t();
                    }
                    const arma::mat block = signal + noise;
                    const arma::vec values = arma::svd(block);
                    store.array(cell, sample, "block", block);
                    store.array(cell, codecs[3].id, "signal", signal);
                    store.array(cell, codecs[3].id, "residual", block - signal);
                    store.array(cell, sample, "singular_values", values);
                    store.array(cell, codecs[3].id, "bulk_edge", arma::mat(1, 1, arma::fill::value(4.1)));
                    store.array(cell, codecs[3].id, "noise_eigenvalues", arma::square(arma::svd(noise)));
                }
            }
    store.finish();
}

}  // namespace spiked::reports
