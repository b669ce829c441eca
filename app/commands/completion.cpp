#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "app/cli/build_info.hpp"
#include "app/cli/command.hpp"
#include "app/cli/exit_code.hpp"
#include "app/commands/list.hpp"
#include "core/runtime/error.hpp"
#include "core/text/names.hpp"
#include "estimators/compressors/compressor.hpp"

// Shell completion and the manual page, generated from the command table.
namespace spiked::app {
namespace {

/// All compositions of a listed estimator and a listed quantizer that are methods, as `eoptshrink+tq-mse`.
std::vector<std::string> compositions() {
    std::vector<std::string> words;
    for (const auto& estimator : listed_names("estimators"))
        for (const auto& quantizer : listed_names("quantizers")) {
            if (quantizer.find('+') != std::string::npos) continue;
            try {
                words.push_back(estimators::parse_method(fmt::format("{}+{}", estimator, quantizer)).text);
            } catch (const Error&) {  // not a method
            }
        }
    return words;
}

/// The possible values of an option: its choices, and the names in the topics of `spiked list` that it accepts.
std::vector<std::string> values_of(const OptionSpec& option) {
    auto values = option.value.choices;
    for (const auto& topic : option.value.topics)
        for (auto& name : listed_names(topic)) values.push_back(std::move(name));
    if (option.key == "--method") {
        static const auto composed = compositions();  // computed once, because many commands take a method
        values.insert(values.end(), composed.begin(), composed.end());
    }
    return values;
}

/// The suffix of the files that a command reads (a study, a store or a coded dump); empty if it reads several kinds.
std::string extension(const ValueSpec& positionals) {
    return positionals.suffixes.size() == 1 ? positionals.suffixes.front() : "";
}

std::vector<std::string> option_names(const OptionSpec& option) { return split(option.key, ','); }

/// The first words of all commands, without repetitions (`kv`, `bench`).
std::vector<std::string> first_words() {
    std::vector<std::string> words;
    for (const auto& command : commands()) {
        const std::string first = split(command.name, ' ').front();
        if (words.empty() || words.back() != first) words.push_back(first);
    }
    return words;
}

/// The second words of the commands of each group.
std::map<std::string, std::vector<std::string>> second_words() {
    std::map<std::string, std::vector<std::string>> words;
    for (const auto& command : commands())
        if (const auto parts = split(command.name, ' '); parts.size() > 1) words[parts[0]].push_back(parts[1]);
    return words;
}

/// The parts of the bash script that depend on the commands. All but `groups` are lines of case statements.
struct BashCases {
    std::string groups;       ///< first words that a second word follows
    std::string seconds;      ///< second words by group
    std::string values;       ///< of options
    std::string options;      ///< of commands
    std::string positionals;  ///< of commands: words, or the ending of file names
};

BashCases bash_cases() {
    BashCases cases;
    for (const auto& [first, words] : second_words()) {
        cases.groups += (cases.groups.empty() ? "" : "|") + first;
        cases.seconds += fmt::format("    {}) words=\"{}\" ;;\n", first, fmt::join(words, " "));
    }
    for (const auto& command : commands()) {
        std::vector<std::string> all;
        for (const auto& option : all_options(command)) {
            std::string patterns;
            for (const auto& name : option_names(option)) {
                all.push_back(name);
                patterns += fmt::format("{}'{} {}'", patterns.empty() ? "" : "|", command.name, name);
            }
            if (const auto words = values_of(option); !words.empty())
                cases.values += fmt::format("    {}) words=\"{}\"{} ;;\n", patterns, fmt::join(words, " "),
                                            option.value.list ? " list=1" : "");
            else if (option.value.kind != ValueSpec::Kind::none)
                cases.values += fmt::format("    {}) return ;;\n", patterns);
        }
        cases.options += fmt::format("    '{}') words=\"{}\" ;;\n", command.name, fmt::join(all, " "));
        if (const auto& words = command.positionals.choices; !words.empty())
            cases.positionals += fmt::format("    '{}') words=\"{}\" ;;\n", command.name, fmt::join(words, " "));
        else if (const auto ending = extension(command.positionals); !ending.empty())
            cases.positionals += fmt::format("    '{}') ending={} ;;\n", command.name, ending);
    }
    return cases;
}

std::string bash_script() {
    const BashCases cases = bash_cases();
    return fmt::format(
        R"(# bash completion of spiked; source it, or keep it as /etc/bash_completion.d/spiked
_spiked() {{
  local at=$COMP_CWORD cur="${{COMP_WORDS[COMP_CWORD]}}" prev command="${{COMP_WORDS[1]}}"
  local words="" ending="" list="" before="" part i
  COMPREPLY=()
  # Bash splits svd:2+tq-mse at the colon.
  while ((at > 2)) && [[ "${{COMP_WORDS[at]}}" == :* || "${{COMP_WORDS[at-1]}}" == *: ]]; do
    cur="${{COMP_WORDS[--at]}}$cur"
  done
  prev="${{COMP_WORDS[at-1]}}"
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{}" -- "$cur"))
    return
  fi
  if ((COMP_CWORD == 2)); then
    case "$command" in
{}    esac
    if [[ -n "$words" ]]; then
      COMPREPLY=($(compgen -W "$words" -- "$cur"))
      return
    fi
  fi
  case "$command" in {}) command="$command ${{COMP_WORDS[2]}}" ;; esac
  # Values of an option; without any, file names are completed.
  case "$command $prev" in
{}  esac
  if [[ -z "$words" && "$cur" == -* ]]; then
    case "$command" in
{}    esac
  elif [[ -z "$words" ]]; then
    case "$command" in
{}    esac
  fi
  if [[ -n "$ending" ]]; then
    compopt -o filenames 2>/dev/null
    # One name a line: names may contain blanks.
    while IFS= read -r i; do COMPREPLY+=("$i"); done < <({{ compgen -f -X "!*$ending" -- "$cur"; compgen -d -- "$cur"; }} | sort -u)
  fi
  # Of a list, the value after the last comma is completed.
  [[ -n "$list" && "$cur" == *,* ]] && before="${{cur%,*}},"
  part="${{cur#"$before"}}"
  [[ -n "$words" ]] && COMPREPLY=($(compgen -P "$before" -W "$words" -- "$part"))
  # After a name with parameters, which no list contains, the quantizer is completed.
  if [[ -n "$words" && ${{#COMPREPLY[@]}} == 0 && "$part" == *:*+* ]]; then
    before="$before${{part%+*}}+"
    words=$(printf '%s\n' $words | grep -v -F + )
    COMPREPLY=($(compgen -P "$before" -W "$words" -- "${{part##*+}}"))
  fi
  # Bash does not replace the text before a colon.
  if [[ "$cur" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
    for i in "${{!COMPREPLY[@]}}"; do COMPREPLY[i]="${{COMPREPLY[i]#"${{cur%:*}}:"}}"; done
  fi
}}
complete -o bashdefault -o default -F _spiked spiked
)",
        fmt::join(first_words(), " "), cases.seconds, cases.groups, cases.values, cases.options, cases.positionals);
}

/// zsh uses the function of bash.
std::string zsh_script() {
    return "#compdef spiked\nautoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" +
           bash_script();
}

/// Text in single quotes, for fish.
std::string fish_quoted(const std::string& text) {
    std::string safe = "'";
    for (const char c : text) safe += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return safe + "'";
}

std::string fish_script() {
    std::string lines = "# fish completion of spiked; keep it as ~/.config/fish/completions/spiked.fish\n";
    const auto seconds = second_words();
    std::vector<std::string> groups;
    for (const auto& [first, words] : seconds) groups.push_back(first);
    for (const auto& word : first_words()) {
        std::string summary = seconds.contains(word) ? fmt::format("{}", fmt::join(seconds.at(word), ", ")) : "";
        for (const auto& command : commands())
            if (command.name == word) summary = command.summary;
        lines +=
            fmt::format("complete -c spiked -n __fish_use_subcommand -f -a {} -d {}\n", word, fish_quoted(summary));
    }
    for (const auto& command : commands()) {
        const auto parts = split(command.name, ' ');
        // `run` is a command, and also the second word of `kv run`.
        std::string where = fmt::format("__fish_seen_subcommand_from {}", parts[0]);
        if (parts.size() > 1) {
            lines += fmt::format("complete -c spiked -n '{}; and not __fish_seen_subcommand_from {}' -f -a {} -d {}\n",
                                 where, fmt::join(seconds.at(parts[0]), " "), parts[1], fish_quoted(command.summary));
            where += "; and __fish_seen_subcommand_from " + parts[1];
        } else {
            where += fmt::format("; and not __fish_seen_subcommand_from {}", fmt::join(groups, " "));
        }
        if (const auto& words = command.positionals.choices; !words.empty())
            lines += fmt::format("complete -c spiked -n '{}' -f -a '{}'\n", where, fmt::join(words, " "));
        else if (const auto ending = extension(command.positionals); !ending.empty())
            lines += fmt::format("complete -c spiked -n '{}' -k -a '(__fish_complete_suffix {})'\n", where, ending);
        for (const auto& option : all_options(command)) {
            lines += fmt::format("complete -c spiked -n '{}'", where);
            for (const auto& name : option_names(option))
                lines += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
            if (const auto words = values_of(option); !words.empty())
                lines += fmt::format(" -x -a '{}'", fmt::join(words, " "));
            else if (option.value.kind != ValueSpec::Kind::none)
                lines += " -r";
            lines += fmt::format(" -d {}\n", fish_quoted(option.help));
        }
    }
    return lines;
}

/// Escapes text for troff: no line is a request, and a dash stays a dash.
std::string troff(std::string_view text) {
    std::string safe = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    for (const char c : text) safe += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    return safe;
}

std::string troff_options(const std::vector<OptionSpec>& options) {
    std::string text;
    for (const auto& option : options) {
        text +=
            fmt::format(".TP\n.B {}\n", troff(fmt::format("{}{}", fmt::join(option_names(option), ", "),
                                                          option.value.shown.empty() ? "" : " " + option.value.shown)));
        text += troff(option.help + (option.fallback.empty() ? "" : " [" + option.fallback + "]")) + "\n";
    }
    return text;
}

std::string man_page() {
    const std::string version = version_line();
    std::string text = fmt::format(
        ".TH SPIKED 1 \"\" \"{}\"\n.ad l\n.SH NAME\nspiked \\- spiked random matrices, estimators and quantizers, and "
        "which statements about them hold\n.SH SYNOPSIS\n.B spiked\n.I COMMAND\n[options]\n.SH COMMANDS\n",
        troff(version.substr(0, version.find(" ("))));
    for (const auto& command : commands()) {
        text += fmt::format(".SS {}\n{}.\n.PP\n.B spiked {}\n.I {}\n[options]\n", troff(command.name),
                            troff(command.summary), troff(command.name), troff(positional_form(command)));
        text += ".PP\n.nf\n";
        for (const auto& example : command.examples) text += troff(example) + "\n";
        text += ".fi\n" + troff_options(command.options);
    }
    text += ".SH COMMON OPTIONS\n" + troff_options(common_options()) + ".SH EXIT STATUS\n";
    for (const auto& [code, meaning] : exit_codes)
        text += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(code), troff(meaning));
    return text;
}

int run_completion(const Arguments& arguments) {
    static const std::map<std::string, std::string (*)()> writers = {
        {"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}, {"man", man_page}};
    const std::string& what = arguments.positionals.front();
    const std::string text = writers.at(what)();
    if (arguments.json())
        print_json(Json::object({{"schema", "spiked.completion/1"}, {"for", what}, {"text", text}}));
    else
        print_data(text);
    return 0;
}

}  // namespace

Command completion_command() {
    return {"completion",
            "print the completion script of a shell, or the manual page",
            {"spiked completion bash > /etc/bash_completion.d/spiked", "spiked completion zsh > ~/.zfunc/_spiked",
             "spiked completion fish > ~/.config/fish/completions/spiked.fish", "spiked completion man > spiked.1"},
            one_of({"bash", "zsh", "fish", "man"}),
            1,
            1,
            {},
            run_completion};
}

}  // namespace spiked::app
