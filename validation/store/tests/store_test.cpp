// Tests of the store: which files are accepted, recovery after a killed writer, and verdicts from the stored numbers.
#include "validation/store/store.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "validation/engine/judge.hpp"
#include "validation/engine/merge.hpp"
#include "validation/engine/tests/fake_study.hpp"
#include "validation/metrics/metric_table.hpp"
#include "validation/statistics/statistics.hpp"
#include "validation/store/size_groups.hpp"

namespace spiked::validation {
namespace {

std::string verdicts_of(Database& store) {
    std::string text;
    Statement row(store, "SELECT verdict, control_verdict, reason FROM verdict ORDER BY verdict_id");
    while (row.step()) text += row.text(0) + "/" + row.text(1) + "/" + row.text(2) + "\n";
    return text;
}

TEST(FactorConditions, CompareNumbersAndTexts) {
    const std::vector<Factor> factors = {{"n", 128.0, "128"}, {"noise.entries", std::nullopt, "laplace"}};
    const auto holds = [&](const FactorCondition& condition) { return hold({condition}, factors); };
    const struct {
        const char* name;
        bool below, at, above;  ///< whether 128 is in this relation to a larger number, itself and a smaller number
    } relations[] = {{"ge", false, true, true},
                     {"gt", false, false, true},
                     {"le", true, true, false},
                     {"lt", true, false, false},
                     {"eq", false, true, false}};
    for (const auto& [name, below, at, above] : relations) {
        const auto relation = enum_named<Relation>(name, "relation");
        EXPECT_EQ(holds({"n", relation, 129.0}), below) << name;
        EXPECT_EQ(holds({"n", relation, 128.0}), at) << name;
        EXPECT_EQ(holds({"n", relation, 127.0}), above) << name;
        EXPECT_FALSE(holds({"noise.entries", relation, 0.0})) << name << ": no number";
        EXPECT_FALSE(holds({"d", relation, 128.0})) << name << ": no such factor";
    }
    EXPECT_TRUE(holds({"noise.entries", std::nullopt, 0.0, "laplace"}));
    EXPECT_TRUE(holds({"n", std::nullopt, 0.0, "128"}));
    EXPECT_FALSE(holds({"n", std::nullopt, 0.0, "64"}));
    EXPECT_EQ(find_enum<Relation>("is"), std::nullopt);
    EXPECT_EQ(find_enum<Relation>("le"), Relation::at_most);
}

TEST(StoreFile, OfAnotherSchemaIsRejected) {
    const std::string path = scratch_path("schema");
    const Experiment experiment = FakeStudy{}.experiment();
    run_into(experiment, path);
    for (const auto& [version, message] :
         {std::pair{"1", "older version (schema 1"}, std::pair{"99", "newer version"}}) {
        edit(path, std::string("PRAGMA user_version = ") + version);
        EXPECT_NE(message_of([&] { (void)open_store(path); }, ErrorKind::input).find(message), std::string::npos);
        EXPECT_NE(
            message_of([&] { Store(path, experiment, "test", 1, Json::object()); }, ErrorKind::input).find(message),
            std::string::npos);
    }
}

TEST(StoreFile, OfAProgramWithOtherMetricsOrReplicatesIsNotResumed) {
    const std::string path = scratch_path("versions");
    FakeStudy study;
    run_into(study.experiment(), path);
    const auto rejected = [&](const std::string& change) {
        edit(path, change);
        return message_of([&] { Store(path, study.experiment(), "test", 1, Json::object()); }, ErrorKind::input);
    };
    EXPECT_NE(rejected("INSERT INTO metric VALUES(NULL, 'younger', 'share', 'none', '')").find("it measures younger"),
              std::string::npos);
    EXPECT_NE(rejected("UPDATE metric SET name = 'older' WHERE metric_id = 3").find("it measures older"),
              std::string::npos);
    EXPECT_NE(rejected("DELETE FROM metric WHERE name <> 'overlap.left' AND metric_id < 50")
                  .find("means of unknown methods or metrics"),
              std::string::npos);
    // A different number of replicates is detected even if `science` does not contain it.
    const std::string other = scratch_path("replicates");
    Experiment experiment = study.experiment();
    run_into(experiment, other);
    experiment.cells[1].replicates = 48;
    EXPECT_NE(message_of([&] { Store(other, experiment, "test", 1, Json::object()); }, ErrorKind::usage)
                  .find("47 to 47 replicates, now cell 2"),
              std::string::npos);
}

TEST(StoreFile, OfAProgramWithFewerMetricsIsResumed) {
    const std::string path = scratch_path("fewer");
    const Experiment experiment = FakeStudy{}.experiment();
    run_into(experiment, path);
    edit(path, "DELETE FROM metric WHERE metric_id > (SELECT max(metric_id) FROM moment)");
    Store store(path, experiment, "test", 1, Json::object());
    EXPECT_TRUE(store.resumed());
    EXPECT_EQ(store.database().integer("SELECT count(*) FROM metric"), metrics().size());
    EXPECT_EQ(store.database().integer("SELECT metric_id FROM metric WHERE name = 'shared_bits'"),
              metric_index("shared_bits") + 1);
}

TEST(StoreFile, KilledBeforeAnythingWasWrittenHasNoSeed) {
    const std::string path = scratch_path("unmade");
    Database(path, Database::Mode::create).execute("BEGIN IMMEDIATE; CREATE TABLE study(seed); ROLLBACK");
    EXPECT_EQ(stored_seed(path), "");
    run_into(FakeStudy{}.experiment(), path);
    EXPECT_EQ(stored_seed(path), FakeStudy{}.experiment().seed.text());
}

std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

TEST(StoreFile, NeverReplacesAnotherDatabase) {
    for (const char* made : {"CREATE TABLE a(x)", "CREATE TABLE a(x); DROP TABLE a", "PRAGMA user_version = 7"}) {
        const std::string path = scratch_path("foreign");
        Database(path, Database::Mode::create).execute(made);
        const std::string before = bytes_of(path);
        ASSERT_FALSE(before.empty());
        const std::string message = message_of([&] { run_into(FakeStudy{}.experiment(), path); }, ErrorKind::input);
        EXPECT_NE(message.find("not a store of this program"), std::string::npos) << message;
        EXPECT_EQ(bytes_of(path), before);
    }
}

std::string big_endian(std::uint32_t number) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xFFU);
    return bytes;
}

/// A copy of a store and its journal in the middle of a transaction, as a killed writer leaves them.
std::string killed_writer(const std::string& name) {
    const std::string path = scratch_path(name + "-writer");
    run_into(FakeStudy{}.experiment(), path);
    const std::string copy = scratch_path(name);
    Database writer(path, Database::Mode::write);
    writer.execute("PRAGMA cache_size = 1; BEGIN IMMEDIATE; UPDATE moment SET mean = 0; UPDATE value SET v = 0");
    for (const char* suffix : {"", "-journal"}) std::filesystem::copy_file(path + suffix, copy + suffix);
    writer.execute("ROLLBACK");
    return copy;
}

TEST(StoreFile, OfAKilledWriterIsReadInItsEarlierStateAndNotChanged) {
    const std::string path = scratch_path("whole");
    run_into(FakeStudy{}.experiment(), path);
    const std::string killed = killed_writer("hot");
    ASSERT_GT(std::filesystem::file_size(killed + "-journal"), 1000U);
    const std::string before = bytes_of(killed);
    const std::string journal = bytes_of(killed + "-journal");
    EXPECT_EQ(science_of(killed), science_of(path));
    EXPECT_EQ(bytes_of(killed), before);
    EXPECT_EQ(bytes_of(killed + "-journal"), journal);
    // A run repairs the store.
    run_into(FakeStudy{}.experiment(), killed);
    EXPECT_FALSE(std::filesystem::exists(killed + "-journal"));
    EXPECT_EQ(science_of(killed), science_of(path));
}

/// A journal for a commit to several databases names another journal, and SQLite deletes the file of that name. No run
/// writes such a journal.
TEST(StoreFile, AJournalThatNamesAnotherIsRejectedByReadersAndWriters) {
    const std::string killed = killed_writer("super");
    const std::string victim = scratch_path("victim.txt");
    std::ofstream(victim) << "mine";
    std::uint32_t sum = 0;
    for (const char c : victim) sum += static_cast<std::uint32_t>(static_cast<signed char>(c));
    std::ofstream(killed + "-journal", std::ios::binary | std::ios::app)
        << big_endian(0) << victim << big_endian(static_cast<std::uint32_t>(victim.size())) << big_endian(sum)
        << "\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
    const auto expect_rejection = [&](const auto& action) {
        const std::string message = message_of(action, ErrorKind::input);
        EXPECT_NE(message.find("names another journal"), std::string::npos) << message;
        EXPECT_EQ(bytes_of(victim), "mine");
    };
    expect_rejection([&] { (void)open_store(killed); });
    expect_rejection([&] { run_into(FakeStudy{}.experiment(), killed); });
    expect_rejection([&] { merge_stores({killed}, scratch_path("merged")); });
    // Negative control: SQLite without our checks deletes the file.
    sqlite3* unchecked = nullptr;
    sqlite3_open(killed.c_str(), &unchecked);
    sqlite3_exec(unchecked, "SELECT count(*) FROM study", nullptr, nullptr, nullptr);
    sqlite3_close(unchecked);
    EXPECT_FALSE(std::filesystem::exists(victim));
}

void overwrite(const std::string& path, std::streamoff at, const std::string& bytes) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(at);
    file << bytes;
}

/// If a journal states no page size, SQLite uses the store's, and writes as many pages as the journal claims.
TEST(StoreFile, AJournalWithAnotherPageSizeIsRejectedByReadersAndWriters) {
    constexpr std::streamoff pages_at = 16;
    constexpr std::streamoff page_size_at = 24;
    for (const std::uint32_t page_size : {0U, 1U, 512U, 65536U}) {
        const std::string killed = killed_writer(fmt::format("pages-{}", page_size));
        overwrite(killed + "-journal", pages_at, big_endian(1000));
        overwrite(killed + "-journal", page_size_at, big_endian(page_size));
        const std::string before = bytes_of(killed);
        const auto expect_rejection = [&](const auto& action) {
            const std::string message = message_of(action, ErrorKind::input);
            EXPECT_NE(message.find(fmt::format("has pages of {} bytes", page_size)), std::string::npos) << message;
            EXPECT_EQ(bytes_of(killed), before);
        };
        expect_rejection([&] { (void)open_store(killed); });
        expect_rejection([&] { run_into(FakeStudy{}.experiment(), killed); });
    }
}

/// A reader copies the journal of a killed run, so an overlong journal could fill the disk.
TEST(StoreFile, AJournalTooLongForItsStoreIsNotCopied) {
    for (const auto& [bytes, part] :
         {std::pair{std::uint64_t{6} << 30, "the rest is a hole"}, {std::uint64_t{4} << 20, "has at most"}}) {
        const std::string killed = killed_writer("long");
        std::filesystem::resize_file(killed + "-journal", bytes);
        const auto expect_rejection = [&, part = part](const auto& action) {
            const std::string message = message_of(action, ErrorKind::input);
            EXPECT_NE(message.find(part), std::string::npos) << message;
            EXPECT_NE(message.find("remove it"), std::string::npos) << message;
        };
        expect_rejection([&] { (void)open_store(killed); });
        expect_rejection([&] { run_into(FakeStudy{}.experiment(), killed); });
    }
    // A journal as long as the store is accepted.
    const std::string killed = killed_writer("usual");
    std::filesystem::resize_file(killed + "-journal", std::filesystem::file_size(killed));
    EXPECT_NO_THROW((void)open_store(killed));
}

/// A schema that differs from ours in any way could make a reader run forever or have other effects.
TEST(StoreFile, WithAnyChangeOfTheSchemaIsRejected) {
    const std::string good = scratch_path("good");
    run_into(FakeStudy{}.experiment(), good);
    ASSERT_NO_THROW((void)open_store(good));
    const auto rejected = [&](const std::string& sql) {
        const std::string path = scratch_path("other");
        std::filesystem::copy_file(good, path);
        edit(path, sql);
        return message_of([&] { (void)open_store(path); }, ErrorKind::input);
    };
    EXPECT_NE(rejected("CREATE VIEW pragma_database_list AS SELECT 1").find("\"pragma_database_list\""),
              std::string::npos);
    EXPECT_NE(rejected("CREATE INDEX more ON value(v)").find("\"more\""), std::string::npos);
    EXPECT_NE(rejected("CREATE TRIGGER more AFTER INSERT ON session BEGIN SELECT 1; END").find("\"more\""),
              std::string::npos);
    EXPECT_NE(rejected("ANALYZE").find("\"sqlite_stat1\""), std::string::npos);
    EXPECT_NE(rejected("DROP VIEW v_bits").find("\"v_bits\""), std::string::npos);
    const auto reworded = [&](const std::string& before, const std::string& after) {
        return rejected("PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, '" + before + "', '" +
                        after + "'); PRAGMA writable_schema = RESET");
    };
    EXPECT_NE(reworded("CHECK(id = 1)", "CHECK(id = 1 )").find("\"study\""), std::string::npos) << "a blank";
    EXPECT_NE(reworded("bits.%", "bits.% -- ").find("\"ledger\""), std::string::npos);
    // Comments may differ, but what only looks like a comment may not.
    const std::string commented = scratch_path("commented");
    std::filesystem::copy_file(good, commented);
    edit(commented,
         "PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = replace(sql, 'exactly one row', 'it''s one'); "
         "PRAGMA writable_schema = RESET");
    EXPECT_NO_THROW((void)open_store(commented));
    EXPECT_NE(reworded("item || ''=''", "item || ''--'' || (SELECT 1) || '' \n=''").find("\"v_bits\""),
              std::string::npos)
        << "in a text";
    EXPECT_NE(reworded("AS bits_total", "/* -- */ AS bits_total").find("\"v_bits\""), std::string::npos);
    EXPECT_NE(reworded("AS bits_total", "AS \"bits_total\"").find("\"v_bits\""), std::string::npos);
}

TEST(StoreFile, WithValuesOfOtherTypesIsRejected) {
    const std::string good = scratch_path("good");
    run_into(FakeStudy{}.experiment(), good);
    const auto message = [&](const std::string& sql) {
        const std::string path = scratch_path("typed");
        std::filesystem::copy_file(good, path);
        edit(path, "PRAGMA ignore_check_constraints = ON; " + sql);
        return message_of([&] { (void)open_store(path); }, ErrorKind::input);
    };
    for (const auto& [sql, part] :
         {std::pair{"UPDATE method SET bits = '\\input'", "table method"},
          {"UPDATE cell SET n = 'x'", "table cell"},
          {"UPDATE study SET title = x'00'", "table study"},
          {"UPDATE moment SET mean = 'x'", "table moment"},
          {"UPDATE verdict SET margin = 'x'", "table verdict"},
          {"UPDATE study SET science_hash = science_hash || char(10) || 'x'", "table study"},
          {"UPDATE study SET science_hash = replace(science_hash, '0', '1')", "not those of its science_hash"},
          {"UPDATE study SET config_resolved = json_set(config_resolved, '$.reps', 1)",
           "not those of its science_hash"},
          {"UPDATE study SET seed = '0xZ'", "table study"},
          {"UPDATE study SET seed = '5eed'", "table study"},
          {"UPDATE cell SET cell_hash = 'g' || cell_id", "table cell"},
          {"UPDATE factor SET num = 9e999", "table factor"},
          {"UPDATE question SET margin = -9e999", "table question"},
          {"UPDATE question SET allowed_lo = -9e999", "table question"},
          {"UPDATE question SET expected = NULL, allowed_lo = -9e999, allowed_hi = 9e999", "table question"},
          {"UPDATE verdict SET expected = NULL, allowed_lo = 9e999, allowed_hi = 9e999", "table verdict"},
          {"UPDATE verdict SET allowed_lo = allowed_hi + 1", "table verdict"},
          {"UPDATE verdict SET exponent_of = printf('%300s', 'n')", "table verdict"},
          {"INSERT INTO question_cell VALUES(1, 1, 0)", "table question_cell"},
          {"PRAGMA foreign_keys = OFF; INSERT INTO question_cell VALUES(1, 99, 1)", "table question_cell"},
          {"DELETE FROM study", "no study"}})
        EXPECT_NE(message(sql).find(part), std::string::npos) << sql << ": " << message(sql);
}

/// Comparisons in SQLite stop at a NUL byte, but our readers get the whole text.
TEST(StoreFile, WithANulByteInATextIsRejected) {
    const std::string good = scratch_path("good");
    run_into(FakeStudy{}.experiment(), good);
    edit(good,
         "INSERT INTO input VALUES(1, 'p', 3, 'ab', 'f', 'l', 'm', '{}'); INSERT INTO array VALUES(1, 0, 1, 'block', "
         "x'00'); INSERT INTO event VALUES('t', 1, 'l', 'c', 'm'); INSERT INTO failure VALUES(1, 3, NULL, 'r', 'x', "
         "'m', 'r')");
    const auto behind = [](const std::string& sql) { return sql + " || char(0) || char(10) || 'x'"; };
    for (const auto& [table, columns] : std::initializer_list<std::pair<std::string, std::vector<std::string>>>{
             {"study", {"science_hash", "seed", "name", "config_resolved", "config_set"}},
             {"session", {"argv", "provenance"}},
             {"input", {"sha256", "path"}},
             {"cell", {"cell_hash", "params", "label"}},
             {"factor", {"txt"}},
             {"method", {"params", "name"}},
             {"metric", {"name"}},
             {"batch", {"digest"}},
             {"failure", {"message"}},
             {"array", {"name"}},
             {"claim", {"statement"}},
             {"verdict", {"reason"}},
             {"figure", {"spec"}},
             {"event", {"message"}}})
        for (const auto& column : columns) {
            const std::string path = scratch_path("nul");
            std::filesystem::copy_file(good, path);
            if (table == "figure")
                edit(path, behind("INSERT INTO figure SELECT 1, 'rate', '{}'"));
            else
                edit(path, behind(fmt::format("UPDATE {0} SET {1} = {1}", table, column)));
            const std::string message = message_of([&] { (void)open_store(path); }, ErrorKind::input);
            EXPECT_NE(message.find(fmt::format("table {} holds a text with a NUL byte", table)), std::string::npos)
                << column << message;
        }
}

TEST(StoreFile, IsNeverWrittenWithANulByteInAText) {
    Experiment experiment = FakeStudy{}.experiment();
    experiment.cells[0].label = std::string("a\0b", 3);  // the metadata of a dump may contain such a text
    const std::string path = scratch_path("nul-made");
    const std::string message = message_of([&] { run_into(experiment, path); }, ErrorKind::input);
    EXPECT_NE(message.find("\"a\\x00b\" holds a NUL byte"), std::string::npos) << message;
}

/// SQLite does not treat `file:x?mode=memory` as a file of that name.
TEST(StoreFile, MayHaveAnyName) {
    const std::string folder = scratch_path("names");
    std::filesystem::create_directory(folder);
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder);
    for (const std::string name :
         {"file:x.spiked", "file:y.spiked?mode=memory", "a%20b.spiked", "a#b?c.spiked", "\xff\n.spiked"}) {
        run_into(FakeStudy{}.experiment(), name);
        EXPECT_TRUE(std::filesystem::exists(name)) << name;
        EXPECT_EQ(open_store(name).integer("SELECT count(*) FROM study"), 1) << name;
    }
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator("."), {}), 5);
    std::filesystem::current_path(before);
}

/// A reader interrupts a statement that takes too many steps for the size of the file.
TEST(StoreFile, LimitsTheStepsOfAReaderInProportionToItsSize) {
    const std::string path = scratch_path("steps");
    run_into(FakeStudy{}.experiment(), path);
    Database store = open_store(path);
    const std::string counted =
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t LIMIT {}) SELECT count(*) FROM t";
    EXPECT_EQ(store.integer(fmt::format(fmt::runtime(counted), 100000)), 100000);
    EXPECT_NE(
        message_of([&] { (void)store.integer(fmt::format(fmt::runtime(counted), 2'000'000'000)); }, ErrorKind::input)
            .find("out of proportion"),
        std::string::npos);
    EXPECT_EQ(store.integer("SELECT count(*) FROM study"), 1) << "each statement has its own limit";
}

TEST(Judge, NeedsTheStoreAlone) {
    const std::string path = scratch_path("judge");
    run_into(FakeStudy{}.experiment(), path);
    Database store(path, Database::Mode::write);
    const std::string before = science_of(store);
    EXPECT_EQ(store.integer("SELECT count(*) FROM verdict"), 5);
    store.execute("DELETE FROM verdict");
    judge(store);
    EXPECT_EQ(science_of(store), before);
    // The false-alarm rate that is divided among the questions is the one that the store declares.
    store.execute("UPDATE study SET false_alarm = 0.25");
    judge(store);
    Statement alpha(store, "SELECT min(alpha), max(alpha) FROM verdict");
    ASSERT_TRUE(alpha.step());
    EXPECT_EQ(alpha.real(0), 0.05);
    EXPECT_EQ(alpha.real(1), 0.05);
}

TEST(Judge, UsesTheEstimatesOfTheSummary) {
    const std::string path = scratch_path("estimates");
    run_into(FakeStudy{}.experiment(), path);
    Database store = open_store(path);
    EXPECT_EQ(
        store.integer("SELECT count(*) FROM verdict v JOIN v_summary s USING(cell_id, method_id, metric, k) WHERE "
                      "v.n = s.n AND v.estimate = s.mean AND v.mcse = s.mcse"),
        5);
}

TEST(Judge, ACheckWhoseNegativeControlPassesIsStoredAsFailed) {
    FakeStudy study;
    study.cells = {{"a", 1.0, 0.1}};
    study.most = 100;
    study.margin = 0.5;
    const auto judged = [&](double fault) {
        Experiment experiment = study.experiment();
        experiment.cells[0].predictions[0].with_fault = fault;
        Store store(":memory:", experiment, "test", 1, Json::object());
        run_experiment(experiment, store, {.threads = 1});
        EXPECT_EQ(count_verdicts(store.database()).passed + count_verdicts(store.database()).failed +
                      count_verdicts(store.database()).inconclusive,
                  1U);
        return verdicts_of(store.database());
    };
    EXPECT_EQ(judged(9.0), "pass/fail/\n");
    EXPECT_EQ(judged(1.1), "fail/pass/the control passes: this check cannot tell the claim from the planted fault\n");
    EXPECT_NE(judged(1.5).find("inconclusive/inconclusive/the control is inconclusive"), std::string::npos);
}

// The data moved to the number of the control would have failed: wherever in the region they lie.
TEST(Judge, AControlIsComparedWithTheRegionItself) {
    FakeStudy study;
    study.most = 100;
    const auto judged = [&](double mean, double control) {
        study.cells = {{"a", mean, 0.1}};
        Experiment experiment = study.experiment();
        experiment.cells[0].predictions[0].region = between(0.0, 6.0);
        experiment.cells[0].predictions[0].with_fault = control;
        Store store(":memory:", experiment, "test", 1, Json::object());
        run_experiment(experiment, store, {.threads = 1});
        EXPECT_EQ(store.database().integer("SELECT count(*) FROM verdict WHERE expected IS NULL AND margin = 3 AND "
                                           "allowed_lo = 0 AND allowed_hi = 6"),
                  1);
        const std::string text = verdicts_of(store.database());
        return text.substr(0, text.rfind('/'));
    };
    // The region about the control, 3.2 to 9.2, holds a mean of 5 and has an end at 3.2.
    for (const double mean : {1.0, 3.0, 3.2, 5.0}) {
        EXPECT_EQ(judged(mean, 6.2), "pass/fail") << mean;
        EXPECT_EQ(judged(mean, -0.2), "pass/fail") << mean;
        EXPECT_EQ(judged(mean, 6.001), "inconclusive/inconclusive") << mean << ": the interval is wider";
        EXPECT_EQ(judged(mean, 5.8), "fail/pass") << mean;
    }
    EXPECT_EQ(judged(7.0, 8.0), "fail/fail");
}

// "At most" and "at least", as a claim of a study states them.
TEST(Judge, ARegionWithOneEndIsJudgedAtThatEnd) {
    constexpr double none = std::numeric_limits<double>::infinity();
    FakeStudy study;
    study.most = 100;
    const auto judged = [&](double mean, const AcceptanceRegion& region, double control) {
        study.cells = {{"a", mean, 0.1}};
        Experiment experiment = study.experiment();
        experiment.cells[0].predictions[0].region = region;
        experiment.cells[0].predictions[0].with_fault = control;
        const std::string path = scratch_path("one-end");
        EXPECT_EQ(run_into(experiment, path), RunOutcome::complete);
        Database store = open_store(path);
        // With 100 values of standard deviation .1 an interval reaches about .04 to either side.
        EXPECT_EQ(store.integer("SELECT count(*) FROM verdict WHERE expected IS NULL AND margin = 0 AND detectable "
                                "BETWEEN 0.03 AND 0.12"),
                  1);
        const std::string text = verdicts_of(store);
        return text.substr(0, text.rfind('/'));
    };
    EXPECT_EQ(judged(-50.0, between(-none, 6.0), 6.2), "pass/fail");
    EXPECT_EQ(judged(5.8, between(-none, 6.0), 6.2), "pass/fail");
    EXPECT_EQ(judged(6.0, between(-none, 6.0), 7.0), "inconclusive/fail");
    EXPECT_EQ(judged(6.2, between(-none, 6.0), 7.0), "fail/fail");
    EXPECT_EQ(judged(1.0, between(-none, 6.0), 5.0), "fail/pass");
    EXPECT_EQ(judged(50.0, between(6.0, none), 5.8), "pass/fail");
    EXPECT_EQ(judged(5.8, between(6.0, none), 5.0), "fail/fail");
    EXPECT_EQ(judged(7.0, between(6.0, none), 6.001), "inconclusive/inconclusive");
}

/// Verdicts on one metric whose value in replicate r is value(r), for a codec of that name.
std::string verdicts_on(const std::string& metric, const std::string& codec, std::size_t replicates,
                        double (*value)(std::uint64_t), const AcceptanceRegion& region, double control) {
    FakeStudy study;
    study.cells = {{"a", 0.0, 0.0}};
    study.most = replicates;
    Experiment experiment = study.experiment();
    experiment.methods[2].base = codec;
    const std::size_t method = metrics()[metric_index(metric)].of == "estimator" ? 1 : 2;
    experiment.cells[0].predictions = {{"overlap.left", metric, method, 0, region.predicted, control, region}};
    experiment.worker = [=](std::size_t, ReplicateRange) -> Experiment::Worker {
        return [=](std::uint64_t r) -> std::vector<Observation> {
            return {{method, metric_index(metric), 0, value(r)}};
        };
    };
    Store store(":memory:", experiment, "test", 1, Json::object());
    run_experiment(experiment, store, {.threads = 1});
    const std::string text = verdicts_of(store.database());
    return text.substr(0, text.rfind('/'));
}

// Limits of Clopper and Pearson, whether all replicates agree or not.
TEST(Judge, AFractionOfReplicatesHasALimitWhereAllAgree) {
    const auto always = [](std::uint64_t) { return 1.0; };
    const auto never = [](std::uint64_t) { return 0.0; };
    const auto mostly = [](std::uint64_t r) { return r % 20 == 0 ? 0.0 : 1.0; };
    const auto right = [&](double (*value)(std::uint64_t), double low, double high, double control) {
        return verdicts_on("rank_right", "tq-mse", 400, value, between(low, high), control);
    };
    EXPECT_EQ(right(always, 0.95, 1.0, 0.5), "pass/fail");
    EXPECT_EQ(right(always, 0.0, 0.5, 0.9), "fail/fail");
    EXPECT_EQ(right(never, 0.0, 0.05, 0.5), "pass/fail");
    EXPECT_EQ(right(always, 0.95, 1.0, 0.99), "fail/pass") << "400 replicates hold .99 within .95 to 1";
    EXPECT_EQ(right(always, 0.95, 1.0, 0.93), "inconclusive/inconclusive");
    EXPECT_EQ(right(always, 0.99, 1.0, 0.5), "inconclusive/fail") << "none of 400 may still be 2 in 100";
    EXPECT_EQ(right(mostly, 0.9, 1.0, 0.5), "pass/fail") << "the limits of a fraction never exceed 1";
    EXPECT_EQ(right(mostly, 0.0, 0.5, 0.9), "fail/fail");
    EXPECT_EQ(verdicts_on("rank_right", "tq-mse", 1, always, between(0.5, 1.0), 0.1), "inconclusive/inconclusive");
}

TEST(Judge, TheIntervalOfAFractionIsThatOfClopperAndPearson) {
    FakeStudy study;
    study.cells = {{"a", 0.0, 0.0}};
    study.most = 200;
    Experiment experiment = study.experiment();
    experiment.cells[0].predictions = {{"overlap.left", "rank_right", 1, 0, 0.9, 0.5, between(0.8, 1.0)}};
    experiment.worker = [](std::size_t, ReplicateRange) -> Experiment::Worker {
        return [](std::uint64_t r) -> std::vector<Observation> {
            return {{1, metric_index("rank_right"), 0, r % 100 == 0 ? 0.0 : 1.0}};
        };
    };
    Store store(":memory:", experiment, "test", 1, Json::object());
    run_experiment(experiment, store, {.threads = 1});
    Statement row(store.database(), "SELECT lo, hi, alpha, estimate, detectable FROM verdict");
    ASSERT_TRUE(row.step());
    const Interval expected = fraction_interval(198, 200, row.real(2));
    EXPECT_EQ(row.real(0), expected.low);
    EXPECT_EQ(row.real(1), expected.high);
    EXPECT_LT(row.real(1), 1.0);
    EXPECT_EQ(row.real(3), 0.99);
    // From the middle of .8 to 1: 200 replicates fail with probability .99 where the fraction is below about .66.
    const double below = 0.9 - row.real(4);
    EXPECT_LT(below, 0.8);
    EXPECT_GT(below, 0.6);
}

// The bits of a quantizer alone are counted, so that equal ones are known; those behind a rank rule or of a code of
// entropies may differ in another block, and so may errors.
TEST(Judge, EqualBitsDecideWhereTheSizeOfACodeIsAConstant) {
    const auto bits = [](std::uint64_t) { return 3.25; };
    const auto judged = [&](const std::string& metric, const std::string& codec, double low, double high) {
        return verdicts_on(metric, codec, 20, bits, between(low, high), 4.0);
    };
    for (const std::string metric : {"bits_per_entry", "bits.indices", "paper_bits"}) {
        EXPECT_EQ(judged(metric, "tq-mse", 3.0, 3.6), "pass/fail") << metric;
        EXPECT_EQ(judged(metric, "tq-mse", 3.3, 3.6), "fail/fail") << metric;
        EXPECT_EQ(judged(metric, "tq-mse", 3.0, 4.5), "fail/pass") << metric << ": the control passes";
        for (const char* codec : {"eoptshrink+tq-mse", "ecsq", "no such method"})
            EXPECT_EQ(judged(metric, codec, 3.0, 3.6), "inconclusive/inconclusive") << metric << " of " << codec;
    }
    EXPECT_EQ(judged("relative_l2", "tq-mse", 3.0, 3.6), "inconclusive/inconclusive");
}

/// A study whose means change as the size to the power of -1/2 about a factor of 3, for two kinds of cells.
Experiment study_of_sizes(double margin, double control) {
    FakeStudy study;
    study.cells.clear();
    study.most = 400;
    for (const char* kind : {"a", "b"})
        for (const double size : {16.0, 64.0, 256.0})
            study.cells.push_back({kind, 3.0 / std::sqrt(size), 0.05 / std::sqrt(size)});
    Experiment experiment = study.experiment();
    experiment.checks = {{.name = "falls", .claim = "overlap.left", .where = {}, .margin_absolute = margin}};
    experiment.checks[0].exponent_of = "n";
    for (std::size_t c = 0; c < experiment.cells.size(); ++c) {
        const double size = 16.0 * std::pow(4.0, static_cast<double>(c % 3));
        auto& cell = experiment.cells[c];
        cell.factors = {{"kind", std::nullopt, c < 3 ? "a" : "b"},
                        {"n", size, fmt::format("{}", size)},
                        {"d", 2.0 * size, fmt::format("{}", 2.0 * size)}};
        cell.predictions = {{"overlap.left", "overlap.left", 0, 1, -0.5, control}};
    }
    return experiment;
}

TEST(Judge, AnExponentIsJudgedOverTheSizesOfEachGroup) {
    Store store(":memory:", study_of_sizes(0.05, 0.0), "test", 1, Json::object());
    run_experiment(study_of_sizes(0.05, 0.0), store, {.threads = 1});
    Database& database = store.database();
    EXPECT_EQ(verdicts_of(database), "pass/fail/\npass/fail/\n");
    EXPECT_EQ(database.integer("SELECT count(*) FROM question_cell"), 6);
    Statement row(database,
                  "SELECT v.cell_id, estimate, mcse, lo, hi, n, expected, exponent_of, detectable FROM verdict v ORDER "
                  "BY verdict_id");
    for (const std::int64_t last : {3, 6}) {
        ASSERT_TRUE(row.step());
        EXPECT_EQ(row.integer(0), last) << "the largest size";
        EXPECT_NEAR(row.real(1), -0.5, 5.0 * row.real(2));
        // A relative error of .05 / 3 / 20 at each size, and the sizes are log 4 apart.
        EXPECT_NEAR(row.real(2), 0.05 / 3.0 / 20.0 / (std::sqrt(2.0) * std::log(4.0)), 3e-5);
        EXPECT_LT(row.real(3), row.real(1));
        EXPECT_GT(row.real(4), row.real(1));
        EXPECT_EQ(row.integer(5), 1200);
        EXPECT_EQ(row.real(6), -0.5);
        EXPECT_EQ(row.text(7), "n");
        EXPECT_LT(row.real(8), 0.06);
    }
    const auto verdicts = [](Experiment experiment) {
        Store other(":memory:", experiment, "test", 1, Json::object());
        run_experiment(experiment, other, {.threads = 1});
        return verdicts_of(other.database());
    };
    Experiment wrong = study_of_sizes(0.05, 0.0);
    for (auto& cell : wrong.cells) cell.predictions[0].value = -0.6;
    EXPECT_EQ(verdicts(wrong), "fail/fail/\nfail/fail/\n");
    EXPECT_EQ(verdicts(study_of_sizes(0.05, -0.52)),
              "fail/pass/the control passes: this check cannot tell the claim from the planted fault\n"
              "fail/pass/the control passes: this check cannot tell the claim from the planted fault\n");
    // Sizes without replicates decide nothing.
    Store part(":memory:", study_of_sizes(0.05, 0.0), "test", 1, Json::object());
    judge(part.database());
    EXPECT_NE(verdicts_of(part.database()).find("inconclusive/inconclusive/a mean has fewer than three values"),
              std::string::npos);
}

TEST(SizeGroups, AgreeInWhatDoesNotFollowTheSize) {
    const auto groups_of = [](const std::vector<std::vector<Factor>>& factors,
                              std::vector<FactorCondition> where = {}) {
        std::vector<ExperimentCell> cells(factors.size());
        for (std::size_t c = 0; c < cells.size(); ++c) cells[c].factors = factors[c];
        Check check{.name = "x", .claim = "x", .where = std::move(where)};
        check.exponent_of = "n";
        std::string text;
        for (const auto& group : size_groups(check, cells)) {
            for (const auto& [cell, size] : group) text += fmt::format("{}:{} ", cell, size);
            text += "| ";
        }
        return text;
    };
    const auto n = [](double value) { return Factor{"n", value, fmt::format("{}", value)}; };
    const auto d = [](double value) { return Factor{"d", value, fmt::format("{}", value)}; };
    EXPECT_EQ(groups_of({{n(64)}, {n(16)}, {n(32)}}), "1:16 2:32 0:64 | ");
    EXPECT_EQ(groups_of({{n(16), d(8)}, {n(32), d(16)}}), "0:16 1:32 | ") << "paired";
    EXPECT_EQ(groups_of({{n(16), d(8)}, {n(16), d(9)}, {n(32), d(8)}, {n(32), d(9)}}), "0:16 2:32 | 1:16 3:32 | ")
        << "crossed";
    EXPECT_EQ(groups_of({{n(16), d(8)}, {n(16), d(9)}, {n(32), d(8)}, {n(32), d(9)}}, {{"d", Relation::equal, 9.0}}),
              "1:16 3:32 | ");
    EXPECT_EQ(groups_of({{d(8)}, {n(0)}, {{"n", std::nullopt, "many"}}, {n(16)}}), "3:16 | ");
}

TEST(Judge, UsesThePredictionsOfTheCurrentProgram) {
    const std::string path = scratch_path("today");
    Experiment experiment = FakeStudy{}.experiment();
    run_into(experiment, path);
    Database before = open_store(path);
    EXPECT_EQ(before.integer("SELECT count(*) FROM verdict WHERE verdict = 'fail'"), 0);
    for (auto& cell : experiment.cells) cell.predictions[0].value += 5.0;
    EXPECT_EQ(run_into(experiment, path), RunOutcome::complete);
    Database after = open_store(path);
    EXPECT_EQ(after.integer("SELECT count(*) FROM verdict WHERE verdict = 'fail'"), 5);
}

TEST(Judge, AStoreWithoutQuestionsHasNoVerdicts) {
    Experiment experiment = FakeStudy{}.experiment();
    experiment.checks.clear();
    Store store(":memory:", experiment, "test", 1, Json::object());
    EXPECT_EQ(run_experiment(experiment, store, {.threads = 1}), RunOutcome::complete);
    EXPECT_EQ(store.database().integer("SELECT count(*) FROM verdict"), 0);
}

TEST(Store, ATransactionWithinAnotherIsAPartOfIt) {
    Database database(":memory:", Database::Mode::trusted);
    database.execute("CREATE TABLE t(x INTEGER)");
    const auto insert_twice = [&](bool commit) {
        Transaction outer(database);
        database.execute("INSERT INTO t VALUES(1)");
        {
            Transaction inner(database);
            database.execute("INSERT INTO t VALUES(2)");
            inner.commit();
        }
        if (commit) outer.commit();
    };
    insert_twice(false);
    EXPECT_EQ(database.integer("SELECT count(*) FROM t"), 0);
    insert_twice(true);
    EXPECT_EQ(database.integer("SELECT count(*) FROM t"), 2);
}

}  // namespace
}  // namespace spiked::validation
