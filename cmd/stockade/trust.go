package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/settings"
)

// trustMode is a way to handle a file of the workspace that requests more than it may set.
type trustMode string

const (
	trustWarn trustMode = ""      // warn that these settings are ignored
	trustAsk  trustMode = "ask"   // ask a person, if there is one
	trustSkip trustMode = "leave" // neither ask nor warn
)

// trustAnnotation is the name of the annotation that holds the trustMode of a command.
const trustAnnotation = "trust"

func (m trustMode) annotation() map[string]string {
	return map[string]string{trustAnnotation: string(m)}
}

// askOnTerminal asks whether to trust a file. Without a terminal, the answer is no.
func (a *app) askOnTerminal(ctx context.Context, f *config.File, was settings.Trust) (bool, error) {
	in, out, done, ok := a.terminal()
	if !ok {
		return false, nil
	}
	defer done()
	return a.askTrust(ctx, in, out, f, was)
}

// askTrust shows the requests of a file and asks whether to trust it; the end of input: no.
func (a *app) askTrust(ctx context.Context, in *os.File, out io.Writer, f *config.File, was settings.Trust) (bool, error) {
	asks := func(all bool) func() string {
		return func() string {
			var b strings.Builder
			showAsks(&b, f, was, columnsOf(in), all)
			return b.String()
		}
	}
	answer, err := a.askChoice(ctx, in, out, prompt.New("Trust this file as it is?", yesOrNo, asks(false), asks(true)))
	return answer == 'y', err
}

// showAsks prints the requests of a file, and below them the changes since it was last trusted.
// Long texts are shortened unless all is set.
func showAsks(w io.Writer, f *config.File, was settings.Trust, width int, all bool) {
	show := func(title, text string) { fmt.Fprintf(w, "  %s\n%s", title, prompt.View{Width: width}.Text(text, all)) }
	fmt.Fprintf(w, "\n%s asks for what only you can give:\n", terminal.Line(f.Path))
	for _, ask := range f.TrustRequests() {
		show(fmt.Sprintf("%s, line %d:", ask.Key, f.Line(ask.Key)), ask.Value)
		// Some letters look like others, which matters in an address or a path.
		if ask.Key != "system_prompt" && strings.ContainsFunc(ask.Value, func(r rune) bool { return r > unicode.MaxASCII }) {
			show("which holds letters beyond ASCII:", fmt.Sprintf("%+q", ask.Value))
		}
		for _, row := range terminal.Wrap(f.Key(ask.Key).Doc, width-3) {
			fmt.Fprintf(w, "  %s\n", row)
		}
	}
	if was.Path != "" {
		changes := was.Changes(f.TrustRequests())
		if len(changes) == 0 {
			changes = []string{"none of its requests; only other parts of the file"}
		}
		show(fmt.Sprintf("changed since it was trusted (%s):", was.Added.Format(time.DateOnly)), strings.Join(changes, "\n"))
	}
	fmt.Fprintf(w, "  sha256 %s\n", f.SHA256)
}

// readLine reads one line from a terminal. It leaves the rest for the next reader.
func readLine(ctx context.Context, in *os.File) (string, error) {
	return readOrCancel(ctx, func() (string, error) {
		buf := make([]byte, 4096) // a terminal delivers one line at a time
		n, err := in.Read(buf)
		return string(buf[:n]), err
	})
}

func newTrustCmds(a *app) []*cobra.Command {
	var sum string
	trust := &cobra.Command{
		Use: "trust [FILE]", Short: "Show what a workspace's agent.toml asks for, and trust it as it is",
		Long: `Show which keys in the agent.toml of a workspace need your trust, with the SHA-256
of the file, and ask whether you trust it. A yes is for this content in this
place. If either changes, you are asked again. The keys that a project can never set are in
` + "`stockade help config`" + `.

--sha256 is for scripts: it trusts what was reviewed, or nothing.`,
		Example: "  stockade config trust\n  stockade config trust ~/src/project/agent.toml\n" +
			"  stockade config trust --sha256 \"$(sha256sum < reviewed.toml | cut -d' ' -f1)\" agent.toml",
		Args: cobra.MaximumNArgs(1), Annotations: trustSkip.annotation(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runConfigTrust(cmd.Context(), a, cmp.Or(strings.Join(args, ""), settings.ProjectFile(a.Workspace)), sum)
		},
	}
	trust.Flags().StringVar(&sum, "sha256", "", "trust the file if this is the SHA-256 of its content, without a question")
	trusted := &cobra.Command{
		Use: "trusted", Short: "List the files that were trusted", Args: cobra.NoArgs, Annotations: trustSkip.annotation(),
		Example: "  stockade config trusted\n  stockade config trusted --json | jq '.[].path'",
		RunE:    func(*cobra.Command, []string) error { return runConfigTrusted(a) },
	}
	trusted.Flags().BoolVar(&a.flags.json, "json", false, "print JSON")
	revoke := &cobra.Command{
		Use: "revoke FILE...", Short: "Stop trusting files", Args: cobra.MinimumNArgs(1), Annotations: trustSkip.annotation(),
		Example: "  stockade config revoke agent.toml",
		RunE:    func(_ *cobra.Command, args []string) error { return runConfigRevoke(a, args) },
	}
	return []*cobra.Command{trust, trusted, revoke}
}

func runConfigTrust(ctx context.Context, a *app, name, sum string) error {
	path, err := settings.FilePlace(name)
	if err != nil {
		return err
	}
	if filepath.Base(path) != filepath.Base(settings.ProjectFile("")) {
		return usageError("name the agent.toml of a workspace", "%s is not a file that asks for anything", name)
	}
	f, err := config.Load(path, config.Project)
	if errors.Is(err, fs.ErrNotExist) {
		return usageError("name the agent.toml of a workspace", "%s: there is no such file", path)
	}
	if err != nil {
		return &exitErr{code: exitUsage, message: err.Error(), hint: "mend the file"}
	}
	was, err := a.Dirs.FindTrust(path)
	switch {
	case err != nil:
		return err
	case len(f.TrustRequests()) == 0:
		a.s.note("%s asks for nothing that it may not set; there is nothing to trust", path)
		return nil
	case was.Covers(f):
		a.s.note("%s is trusted as it is, since %s", path, was.Added.Format(time.DateOnly))
		return nil
	}
	if sum != "" {
		showAsks(a.s.err, f, was, 80, true)
		if strings.ToLower(strings.TrimPrefix(sum, "sha256:")) != f.SHA256 {
			return usageError("review the file again, and name its SHA-256", "the content of %s is not that of --sha256; it is not trusted", path)
		}
		return a.saveTrust(f)
	}
	in, out, done, ok := a.terminal()
	if !ok {
		showAsks(a.s.err, f, was, 80, true)
		return usageError(fmt.Sprintf("to trust exactly this content: stockade config trust --sha256 %s %s", f.SHA256, path), "there is no terminal to ask on")
	}
	defer done()
	yes, err := a.askTrust(ctx, in, out, f, was)
	if err != nil {
		return err
	}
	if !yes {
		return &exitErr{code: exitDenied, message: path + " is not trusted"}
	}
	return a.saveTrust(f)
}

// saveTrust records that the person trusts a file, and prints a note.
func (a *app) saveTrust(f *config.File) error {
	if err := a.Dirs.Trust(f); err != nil {
		return err
	}
	a.s.note("trusted: %s, sha256 %s", f.Path, f.SHA256)
	return nil
}

// trustedFileJSON is a trusted file in the output of `config trusted --json`.
type trustedFileJSON struct {
	settings.Trust
	State string `json:"state"` // "holds", "changed", "gone" or "unreadable"
}

func runConfigTrusted(a *app) error {
	trusts, err := a.Dirs.Trusts()
	if err != nil {
		return err
	}
	var out []trustedFileJSON
	for _, t := range trusts {
		s := trustedFileJSON{t, "changed"}
		switch f, err := config.Load(t.Path, config.Project); {
		case errors.Is(err, fs.ErrNotExist):
			s.State = "gone"
		case err != nil:
			s.State = "unreadable"
		case t.Covers(f):
			s.State = "holds"
		}
		out = append(out, s)
	}
	if done, err := printedList(a, out, "no file was trusted"); done {
		return err
	}
	w := table.New(table.Path("FILE"), table.Fixed("STATE"), table.Fixed("SINCE"), table.Fixed("SHA256"), table.Text("MAY SET"))
	for _, s := range out {
		var names []string
		for _, ask := range s.Asks {
			names = append(names, ask.Key)
		}
		w.Row(s.Path, s.State, s.Added.Format(time.DateOnly), fmt.Sprintf("%.12s", s.SHA256), strings.Join(names, ", "))
	}
	return a.s.table(w)
}

func runConfigRevoke(a *app, names []string) error {
	for _, name := range names {
		path, err := settings.FilePlace(name)
		if err != nil {
			return err
		}
		found, err := a.Dirs.Distrust(path)
		if err != nil {
			return err
		}
		if !found {
			return usageError("`stockade config trusted` lists what is", "%s is not trusted", path)
		}
		fmt.Fprintf(a.s.out, "revoked: %s\n", terminal.Line(path))
	}
	return nil
}
