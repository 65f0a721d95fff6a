package main

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// helpPages holds pages of the repository, which are texts of `stockade help`, too: Markdown that
// is readable without rendering.
//
//go:embed help/*.md help/tools/*.md
var helpPages embed.FS

// topic is a page of the help. The first line of page is "# NAME: SHORT".
type topic struct{ name, short, page string }

// linkTargets matches the lines with the targets of links at the end of a page.
var linkTargets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\[.*\]: .*\n`) })

// text returns the page in the form for a terminal.
func (t topic) text() string {
	return strings.TrimSpace(linkTargets().ReplaceAllString(t.page, "")) + "\n"
}

// The directories of the topics, and of the pages of the built-in tools, which are generated from
// their manifests.
const (
	topics    = "help"
	toolPages = "help/tools"
)

// pagesIn returns the pages of a directory, sorted by name.
func pagesIn(dir string) (out []topic) {
	files, _ := fs.Glob(helpPages, dir+"/*.md")
	for _, file := range files {
		page, err := helpPages.ReadFile(file)
		if err != nil {
			panic(err) // it is embedded
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(page), "# "), "\n")
		name, short, _ := strings.Cut(title, ": ")
		out = append(out, topic{name, short, string(page)})
	}
	return out
}

// newHelpCmd returns the command help, with a subcommand for each topic. If a topic and a
// command have the same name, help shows the topic: the command has --help.
func newHelpCmd(a *app, root *cobra.Command) *cobra.Command {
	pages := pagesIn(topics)
	help := &cobra.Command{
		Use: "help [TOPIC | COMMAND]", Short: "Show a topic, or the help of a command",
		Example: "  stockade help\n  stockade help policy\n  stockade help session list",
		// Help needs no setting except ui.plain, and must work if the settings have a mistake.
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.trust = trustSkip
			_ = a.open(cmd.Context())
			return nil
		},
	}
	help.RunE = func(_ *cobra.Command, args []string) error {
		if t, ok := findToolPage(args); ok {
			_, err := fmt.Fprint(a.s.out, t.text())
			return err
		}
		cmd, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 {
			return noTopicError(help, root, args)
		}
		cmd.InitDefaultHelpFlag()
		return cmd.Help()
	}
	for _, t := range pages {
		help.AddCommand(&cobra.Command{
			Use: t.name, Short: t.short, DisableFlagsInUseLine: true,
			RunE: func(_ *cobra.Command, args []string) error {
				if len(args) > 0 { // a subcommand of the command with this name
					return help.RunE(help, append([]string{t.name}, args...))
				}
				more := ""
				if _, ok := findToolPage([]string{t.name}); ok {
					more = fmt.Sprintf("\n`stockade help tool %s` shows the tool of that name.\n", t.name)
				}
				if cmd, rest, err := root.Find([]string{t.name}); err == nil && len(rest) == 0 {
					more = fmt.Sprintf("\n`%s --help` shows the command of that name.\n", cmd.CommandPath())
				}
				_, err := fmt.Fprint(a.s.out, t.text()+more)
				return err
			},
		})
	}
	show := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		var text strings.Builder
		out := cmd.OutOrStdout()
		cmd.SetOut(&text)
		show(cmd, args)
		cmd.SetOut(out)
		fmt.Fprint(a.s.out, wrapHanging(text.String(), a.s.width()))
		if cmd == root {
			fmt.Fprintln(a.s.out, "\nTopics, shown by `stockade help TOPIC`:")
			for _, t := range pages {
				fmt.Fprintf(a.s.out, "  %-11s %s\n", t.name, t.short)
			}
			fmt.Fprintln(a.s.out, "\nIn a topic, [NAME] is another topic or a file of the repository.")
		}
	})
	return help
}

// listGap matches a line of a list up to the text about the name: indentation, name and gap.
var listGap = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ *\S.*?\S {2,}`) })

// wrapHanging breaks lines, so that each is shorter than columns. A line of a list continues
// below the text about its name. A line of a paragraph that is too long is first joined with
// those after it. Lines with an example, which begin with "  stockade ", are not broken.
func wrapHanging(text string, columns int) string {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if terminal.Width(line) < columns || strings.HasPrefix(line, "  stockade ") {
			continue
		}
		from := len(listGap().FindString(line))
		if from == 0 || from > columns/2 {
			from = len(line) - len(strings.TrimLeft(line, " "))
		}
		for from == 0 && i+1 < len(lines) && lines[i+1] != "" && lines[i+1][0] != ' ' {
			line += " " + lines[i+1]
			lines = slices.Delete(lines, i, i+1)
		}
		rows := terminal.Wrap(line[from:], columns-1-from)
		lines[i] = line[:from] + strings.Join(rows, "\n"+strings.Repeat(" ", from))
	}
	return strings.Join(lines, "\n")
}

// noTopicError returns the error for words that are neither a topic nor a command.
func noTopicError(help, root *cobra.Command, words []string) error {
	hint := "`stockade help` lists the topics and the commands"
	word := words[0]
	if len(words) == 2 && isToolWord(word) {
		word = words[1] // the name of a tool
	}
	word = strings.ReplaceAll(word, "-", "_")
	var tools []string
	for _, t := range pagesIn(toolPages) {
		tools = append(tools, t.name)
	}
	near := append(help.SuggestionsFor(words[0]), root.SuggestionsFor(words[0])...)
	tool := nearest.Find(word, tools)
	switch inner := moduleTools(word); {
	case inner != nil:
		hint = fmt.Sprintf("%s is a module of tools: %s; `stockade help %s` shows one", word, strings.Join(inner, ", "), inner[0])
	case tool != "" && (len(near) == 0 || word != words[0]):
		hint = fmt.Sprintf("did you mean `stockade help tool %s`?", tool)
	case len(near) > 0:
		hint = fmt.Sprintf("did you mean `stockade help %s`?", near[0])
	}
	return usageError(hint, "there is no topic and no command %q", strings.Join(words, " "))
}

// findToolPage returns the page of a built-in tool; false: there is none. words is the name of
// the tool, or the word "tool" and the name, because a topic may have the same name.
func findToolPage(words []string) (t topic, ok bool) {
	if len(words) == 2 && isToolWord(words[0]) {
		words = words[1:]
	}
	pages := pagesIn(toolPages)
	i := slices.IndexFunc(pages, func(t topic) bool { return len(words) == 1 && t.name == words[0] })
	if i < 0 {
		return topic{}, false
	}
	return pages[i], true
}

func isToolWord(word string) bool { return word == "tool" || word == "tools" }

// moduleTools returns the names of the tools of a built-in module; nil: there is none.
func moduleTools(name string) (out []string) {
	builtin, err := registry.Builtin()
	if err != nil { // this build has no tools
		return nil
	}
	for _, e := range builtin.Entries() {
		if e.Module.Name == name {
			out = append(out, e.Name)
		}
	}
	return out
}
