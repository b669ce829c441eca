#include "sim/tables/table_words.hpp"

#include <algorithm>
#include <cctype>
#include <string>

#include "core/text/names.hpp"
#include "sim/tables/table_cells.hpp"

namespace spiked::sim {

bool is_missing(std::string_view text) {
    static constexpr std::string_view words[] = {
        "", "na", "n/a", "n.a.", "nan", "-nan", "+nan", "<na>", "nat", "null", "(null)", "\\n", "none", "nil",
        "missing", "?", ".", "..", ":", "-", "--", "\u2013", "\u2014", "n.d.", "k.a.", "inf", "+inf", "-inf",
        "infinity", "+infinity", "-infinity",
        // of C's library for Windows
        "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "1.#inf", "-1.#inf", "nan(ind)", "-nan(ind)",
        // errors of spreadsheets in English, German, French, Italian, Spanish, Portuguese and Dutch
        "#n/a", "#na", "#null!", "#num!", "#value!", "#div/0!", "#ref!", "#name?", "#nv", "#wert!", "#zahl!", "#bezug!",
        "#n/d", "#valeur!", "#nombre!", "#nom?", "#valore!", "#rif!", "#nome?", "#valor!", "#\u00A1valor!",
        "#\u00A1num!", "#\u00A1ref!", "#\u00BFnombre?", "#n/b", "#waarde!", "#getal!", "#verw!", "#naam?"};
    constexpr std::size_t longest = 10;
    if (text.size() > longest) return false;
    if (text == "MM") return true;  // of weather stations
    if (text.size() == 2 && text[0] == '.' && std::isalpha(static_cast<unsigned char>(text[1])) != 0)
        return true;  // SAS
    return std::find(std::begin(words), std::end(words), lower_case(text)) != std::end(words);
}

bool is_infinite(std::string_view text) {
    return is_missing(text) && lower_case(text).find("inf") != std::string::npos;
}

bool names_a_column(std::string_view text) {
    static constexpr std::string_view names[] = {
        "#",          "product",   "variable",   "compound", "protein",   "year",      "month",   "day",     "group",
        "class",      "model",     "user",       "id",       "index",     "row",       "rownum",  "number",  "no",
        "nr",         "key",       "subject",    "sample",   "code",      "case",      "name",    "names",   "gene",
        "genes",      "symbol",    "probe",      "country",  "region",    "city",      "state",   "species", "feature",
        "label",      "date",      "time",       "word",     "token",     "item",      "patient", "station", "ticker",
        "wavelength", "frequency", "wavenumber", "batch",    "condition", "treatment", "cluster"};
    const std::string name = lower_case(text);
    return std::find(std::begin(names), std::end(names), name) != std::end(names) || name.ends_with("_id");
}

bool names_an_axis(std::string_view text) {
    static constexpr std::string_view words[] = {"time", "wavelength", "wavenumber", "frequency", "t", "date"};
    const std::string word = lower_case(text.substr(0, text.find_first_of(" ([_/")));
    const bool known = std::find(std::begin(words), std::end(words), word) != std::end(words);
    return known || text.ends_with("ID") || text.ends_with("Id");
}

bool names_a_time(std::string_view text) {
    static constexpr std::string_view names[] = {"year", "yr",     "yyyy", "month",  "mo",        "mon",     "mm",
                                                 "day",  "dy",     "dd",   "doy",    "hour",      "hr",      "hh",
                                                 "min",  "minute", "mn",   "second", "sec",       "ss",      "date",
                                                 "time", "yy",     "jd",   "mjd",    "timestamp", "datetime"};
    std::string name = lower_case(text.substr(0, 16));
    if (name.starts_with('#')) name.erase(0, 1);
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool names_labels(std::string_view text) {
    static constexpr std::string_view names[] = {"class", "target", "label",     "labels", "outcome",
                                                 "sex",   "gender", "phenotype", "cohort", "batch"};
    return std::find(std::begin(names), std::end(names), lower_case(text.substr(0, 16))) != std::end(names);
}

bool names_a_total(std::string_view text) {
    static constexpr std::string_view names[] = {
        "total",          "totals",   "subtotal", "sum",    "sums",      "mean",    "means",
        "average",        "avg",      "median",   "sd",     "std",       "std dev", "stdev",
        "stddev",         "sem",      "variance", "count",  "min",       "max",     "minimum",
        "maximum",        "25%",      "50%",      "75%",    "1st qu",    "3rd qu",  "standard deviation",
        "standard error", "std. dev", "summe",    "gesamt", "mittelwert"};
    constexpr std::size_t longest = 64;
    if (text.size() > longest) return false;
    std::string name = lower_case(text);
    while (name.ends_with('.') || name.ends_with(':')) name.pop_back();
    // HTSeq and STAR count what belongs to no row in rows such as __no_feature and N_noFeature.
    static constexpr std::string_view of_star[] = {"n_unmapped", "n_multimapping", "n_nofeature", "n_ambiguous"};
    return std::find(std::begin(names), std::end(names), name) != std::end(names) || name.ends_with(" total") ||
           name.ends_with(" totals") || (name.size() > 2 && name.starts_with("__")) ||
           std::find(std::begin(of_star), std::end(of_star), name) != std::end(of_star);
}

bool is_date_or_time(std::string_view text) {
    constexpr std::string_view digits = "0123456789";
    if (!begins_number(text) || digits.find(text.front()) == digits.npos) return false;
    const std::size_t end = std::min(text.find_first_not_of(digits), text.size());
    const std::string_view rest = text.substr(end);
    if (rest.starts_with(':') && end <= 2)
        return rest.size() >= 3 && is_digits(rest.substr(1, 2)) &&
               rest.find_first_not_of("0123456789:., +-AMPZamp") == rest.npos;
    if (rest.empty() || std::string_view("-/.").find(rest.front()) == std::string_view::npos) return false;
    const std::size_t second = rest.find(rest.front(), 1);
    if (second == rest.npos || second < 2 || second > 4) return false;  // a number or the first letters of a month
    const std::string_view year = rest.substr(second + 1, rest.substr(second + 1).find_first_of(" T"));
    return is_digits(year) && year.size() <= 4;
}

bool is_unnamed(std::string_view cell) { return cell.empty() || cell.starts_with("Unnamed: "); }

}  // namespace spiked::sim
