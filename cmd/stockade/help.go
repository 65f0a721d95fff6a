package main

import (
	"embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/sdk/go/nearest"
)

// The topics are pages of the repository and texts of `stockade help` at once:
// Markdown that reads well as it is.
//
//go:embed help/*.md help/tools/*.md
var helpPages embed.FS

// topic is a page about one thing. Its first line is "# NAME: SHORT".
type topic struct{ name, short, file string }

// linkTargets are the lines behind a page that say where its links lead.
var linkTargets = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\[.*\]: .*\n`) })

// text is the page as it is shown.
func (t topic) text() string {
	page, err := helpPages.ReadFile(t.file)
	if err != nil {
		panic(err) // it is part of the program
	}
	return strings.TrimSpace(linkTargets().ReplaceAllString(string(page), "")) + "\n"
}

// topics lists the pages by name.
func topics() []topic { return pagesIn("help") }

// toolPages lists the pages of the built-in tools, which are written from their
// manifests.
func toolPages() []topic { return pagesIn("help/tools") }

// maxTitle is how much of a page is read for its first line: all of them are listed at
// every start.
const maxTitle = 160

func pagesIn(dir string) (out []topic) {
	files, err := helpPages.ReadDir(dir)
	if err != nil {
		panic(err) // it is part of the program
	}
	for _, f := range files {
		if f.IsDir() {
			continue
		}
		t := topic{file: dir + "/" + f.Name()}
		page, err := helpPages.Open(t.file)
		if err != nil {
			panic(err)
		}
		var head [maxTitle]byte
		n, _ := page.Read(head[:])
		title, _, _ := strings.Cut(strings.TrimPrefix(string(head[:n]), "# "), "\n")
		t.name, t.short, _ = strings.Cut(title, ": ")
		out = append(out, t)
	}
	return out
}

// newHelpCmd has the topics as its commands. Where a topic and a command have
// one name, the topic is shown: the command has --help.
func newHelpCmd(a *app, root *cobra.Command) *cobra.Command {
	pages := topics()
	help := &cobra.Command{
		Use: "help [TOPIC | COMMAND]", Short: "Show a topic, or the help of a command",
		Example: "  stockade help\n  stockade help policy\n  stockade help session list",
		// Help needs no settings but ui.plain, and has to work where these have a mistake.
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
				if len(args) > 0 { // a command below the one of that name
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

// listGap is what parts a name in a list from what is said of it.
var listGap = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ *\S.*?\S {2,}`) })

// wrapHanging is a text of ours in which no line is wider than the columns but one that is a
// command: others go on below where what they say of a name begins, and those of a
// paragraph in its next line.
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

// noTopicError says that neither a topic nor a command has the name.
func noTopicError(help, root *cobra.Command, words []string) error {
	hint := "`stockade help` lists the topics and the commands"
	word := words[0]
	if len(words) == 2 && isToolWord(word) {
		word = words[1] // the name of a tool
	}
	word = strings.ReplaceAll(word, "-", "_")
	var tools []string
	for _, t := range toolPages() {
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

// findToolPage is the page that is asked for by the name of a tool, or by two words, such
// as tool git: a topic may have that name, too.
func findToolPage(words []string) (t topic, ok bool) {
	if len(words) == 2 && isToolWord(words[0]) {
		words = words[1:]
	}
	pages := toolPages()
	i := slices.IndexFunc(pages, func(t topic) bool { return len(words) == 1 && t.name == words[0] })
	if i < 0 {
		return topic{}, false
	}
	return pages[i], true
}

func isToolWord(word string) bool { return word == "tool" || word == "tools" }

// moduleTools are the tools of a built-in module.
func moduleTools(name string) (out []string) {
	builtin, err := registry.Builtin()
	if err != nil { // a build without tools
		return nil
	}
	for _, e := range builtin.Entries() {
		if e.Module.Name == name {
			out = append(out, e.Name)
		}
	}
	return out
}
