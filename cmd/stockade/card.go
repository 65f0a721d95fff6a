package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stockade-dev/stockade/cmd/stockade/internal/humanize"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/prompt"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/table"
	"github.com/stockade-dev/stockade/cmd/stockade/internal/terminal"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/registry/trust"
	"github.com/stockade-dev/stockade/host/tool"
)

// card shows a module that waits for a yes, with everything that a person needs to decide.
// Together with the question it takes at most cardRows rows; the rest is behind "?". Text of
// the module stands behind a bar. Rows with our text hold only checked names of the module.
type card struct {
	review *registry.Review
	width  int
	color  bool
	work   string // the workspace, whose files a yes would open
}

// Limits of the card before "?" is pressed, in rows; titleColumns: the width of the titles.
const (
	cardRows     = 15 // rows of card and question, with the blank rows
	questionRows = 3  // rows of the question, with the text before it
	textRows     = 2  // rows of a description, or of one side of a change
	titleColumns = 11
)

// short returns the card before "?" is pressed. It ends with a blank row if there is room.
func (c card) short() string {
	r, w := c.review, registry.WantsOf(c.review.Record.Manifest)
	signed := terminal.Wrap(signedBy(r.Verdict), c.width-titleColumns-4)
	rows := []string{"", c.head(), c.row("from", r.Record.Source), c.signed(signed[0])}
	for _, more := range signed[1:] {
		rows = append(rows, c.row("", more))
	}
	if kind := foreignKind(r.Record); kind != "" {
		rows = append(rows, c.row("kind", kind))
	}
	if r.Previous == nil && len(r.Record.Manifest.Tools) > 1 {
		rows = append(rows, c.row("tools", fmt.Sprintf("%d: %s", len(r.Record.Manifest.Tools), strings.Join(toolNames(r), ", "))))
	}
	rows = append(rows, c.wantRows(w)...)
	end := c.warnings(w)
	if notes := r.Record.Manifest.Notes; len(notes) > 0 && len(rows)+len(end) < cardRows-questionRows-textRows {
		end = append(c.quotedRows("", suffixed("note", len(notes))+": ", notes[0], 1), end...)
	}
	var texts []string
	if room := cardRows - questionRows - len(rows) - len(end); r.Previous != nil {
		texts = c.changes(room)
	} else {
		texts = c.descriptions(room)
	}
	rows = append(append(rows, texts...), end...)
	if len(rows) < cardRows-questionRows {
		rows = append(rows, "")
	}
	return strings.Join(rows, "\n") + "\n"
}

func (c card) style(style, text string) string { return terminal.Style(c.color, style, text) }

// row returns a row with our text: a title and a text.
func (c card) row(title, text string) string {
	return fmt.Sprintf("  %-*s %s", titleColumns, title, fit(text, c.width-titleColumns-4))
}

// rightAligned returns a row with a styled text at its right end.
func (c card) rightAligned(row, style, right string) string {
	row = fit(row, c.width-len(right)-4)
	return row + strings.Repeat(" ", max(c.width-1-terminal.Width(row)-len(right), 2)) + c.style(style, right)
}

// head returns the row with the name and version of the module, and for an update the
// version that it replaces.
func (c card) head() string {
	r := c.review
	name := "  " + r.Record.Name + " " + displayVersion(r.Record.Manifest)
	switch {
	case r.IsUnchanged():
		return c.rightAligned(name, terminal.Dim, "which you have")
	case r.Previous == nil:
		return c.rightAligned(name, terminal.Dim, humanize.Bytes(r.Record.Bytes))
	}
	name = "  " + r.Record.Name + " " + displayVersion(r.Previous.Manifest) + " -> " + displayVersion(r.Record.Manifest)
	if r.Previous.Signer == r.Record.Signer && r.Record.Signer != "" {
		return c.rightAligned(name, terminal.Green, "the same signer")
	}
	return c.rightAligned(name, terminal.Dim, humanize.Bytes(r.Record.Bytes))
}

// signed returns the row about the signer; by is its text. It marks a change of the signer. A
// module signed by unknown keys has no signer.
func (c card) signed(by string) string {
	r := c.review
	row := c.row("signed by", by)
	switch {
	case r.Previous != nil && r.Previous.Signer != r.Record.Signer:
		return c.rightAligned(row, terminal.Red, "<- before: "+fit(cmp.Or(r.Previous.Signer, "nobody"), 24))
	case r.Record.Signer == "":
		return c.style(terminal.Yellow, row)
	}
	return row
}

// wantRows returns the rows about the access that the module asks for, one for each kind; a
// single row if it asks for nothing, or does not say what it needs. For an update they mark
// the kinds whose access is another than before.
func (c card) wantRows(w registry.Wants) (out []string) {
	if w.Nothing() {
		return []string{c.row("wants", "nothing: it only computes")}
	}
	if w.Inferred {
		return []string{c.row("wants", "it does not say; its imports could use: "+strings.Join(w.InferredAccess(), ", "))}
	}
	var was registry.Wants
	if c.review.Previous != nil {
		was = registry.WantsOf(c.review.Previous.Manifest)
	}
	before := wantsByKind(was)
	title := "wants"
	for i, thing := range wantsByKind(w) {
		if thing == "" {
			continue
		}
		text := fmt.Sprintf("%-8s %s", wantedKinds[i], thing)
		mark := ""
		if c.review.Previous != nil && thing != before[i] {
			mark = "<- not in " + fit(displayVersion(c.review.Previous.Manifest), 16)
		}
		if i == 0 && c.work != "" {
			text += " in "
			text += table.Middle(terminal.Line(c.work), c.width-titleColumns-7-len(text)-len(mark))
		}
		row := c.row(title, text)
		if mark != "" {
			row = c.rightAligned(row, terminal.Red, mark)
		}
		out, title = append(out, row), ""
	}
	return out
}

var wantedKinds = [...]string{"files", "hosts", "secrets", "commands", "store"}

// wantsByKind returns the access that a module asks for, in the order of wantedKinds; empty:
// it asks for nothing of that kind.
func wantsByKind(w registry.Wants) (out [len(wantedKinds)]string) {
	out[0] = map[tool.Files]string{tool.FilesRead: "to read", tool.FilesWrite: "to read and change"}[w.Files]
	hosts := w.Hosts
	if w.AnyHost {
		hosts = append([]string{"any that you name"}, hosts...)
	}
	out[1] = countedList(hosts)
	var secrets []string
	for _, s := range w.Secrets {
		secrets = append(secrets, s.Name+prefixIfSet(" for ", strings.Join(s.Hosts, ", ")))
	}
	out[2] = countedList(secrets)
	if w.Exec {
		out[3] = "yes, and you are asked about each"
	}
	if w.Store {
		out[4] = "data in a session, shared by its tools"
	}
	return out
}

// countedList joins texts with commas; before more than three, it puts their number.
func countedList(things []string) string {
	if len(things) > 3 {
		return fmt.Sprintf("%d: %s", len(things), strings.Join(things, ", "))
	}
	return strings.Join(things, ", ")
}

// descriptions returns the descriptions of the tools in at most room rows. If not all of them
// fit, the last row has the number of the others.
func (c card) descriptions(room int) (out []string) {
	tools := c.review.Record.Manifest.Tools
	each := min(max(room/len(tools), 1), textRows)
	for i, s := range tools {
		if left := len(tools) - i; left > 1 && len(out)+each+1 > room {
			return append(out, noteRow(fmt.Sprintf("and %d more tools; ? shows all of it", left)))
		}
		out = append(out, c.quotedRows("", c.review.Record.Name+"_"+s.Name+": ", s.Description, each)...)
	}
	return out
}

// changes returns the differences from the approved module in at most room rows. It leaves out
// differences that the rows of wantRows show.
func (c card) changes(room int) (out []string) {
	changes := c.review.Changes
	if wantsByKind(registry.WantsOf(c.review.Previous.Manifest)) != wantsByKind(registry.WantsOf(c.review.Record.Manifest)) {
		changes = slices.DeleteFunc(slices.Clone(changes), func(c registry.Change) bool { return c.AboutAccess })
	}
	for i, change := range changes {
		was, is := policy.TrimCommonStart(oneLine(change.Before), oneLine(change.After), 20)
		rows := []string{c.style(terminal.Yellow, "  "+fit(change.Title, c.width-3))}
		if was != "" {
			rows = append(rows, c.quotedRows(terminal.Red, "- ", was, textRows)...)
		}
		if is != "" {
			rows = append(rows, c.quotedRows(terminal.Green, "+ ", is, textRows)...)
		}
		left := len(changes) - i
		if len(out)+len(rows) > room || left > 1 && len(out)+len(rows)+1 > room {
			return append(out, c.style(terminal.Yellow, fmt.Sprintf("  and %s; ? shows all of it", humanize.Plural(left, "more change"))))
		}
		out = append(out, rows...)
	}
	if len(c.review.Changes) == 0 && !c.review.IsUnchanged() {
		out = append(out, "  Its code has changed. Its description and its requests are the same.")
	}
	return out
}

func noteRow(text string) string { return prompt.Note + text }

// quotedRows returns a text of a module in at most maxRows rows behind bars, after our text
// before. If the text is cut, the rows show its length.
func (c card) quotedRows(style, before, text string, maxRows int) (out []string) {
	rows := terminal.Wrap(before+terminal.Line(oneLine(text)), prompt.Room(c.width))
	if len(rows) > maxRows {
		size := fmt.Sprintf(" ... (%d characters)", utf8.RuneCountInString(text))
		rows = rows[:maxRows]
		rows[maxRows-1] = terminal.Rows(rows[maxRows-1], prompt.Room(c.width)-len(size))[0] + size
	}
	for i, row := range rows {
		bar := prompt.Bar
		if i > 0 {
			bar = prompt.Continued
		}
		out = append(out, bar+c.style(style, row))
	}
	return out
}

// oneLine replaces runs of blanks and line ends, behind which text could hide, by single
// blanks.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func fit(text string, columns int) string {
	rows := terminal.Rows(terminal.Line(text), columns)
	if len(rows) == 1 {
		return rows[0]
	}
	return terminal.Rows(rows[0], max(columns-4, 2))[0] + " ..."
}

// displayVersion returns the version of a module, or a note that it has none, or none that is
// valid and short. Another text is only shown behind "?", because a stranger wrote it.
func displayVersion(m tool.Manifest) string {
	switch {
	case m.Version == "":
		return "(no version)"
	case sign.ValidVersion(m.Version) && len(m.Version) <= maxVersion:
		return m.Version
	}
	return "(not a version)"
}

const maxVersion = 24

// warnings returns a row about data that the module could send after a yes; nil: none.
func (c card) warnings(w registry.Wants) (out []string) {
	hosts := fit(cmp.Or(countedList(w.Hosts), "the hosts that you allow"), c.width-46)
	switch {
	case w.Inferred: // a yes does not give inferred access
	case w.CanSendFiles:
		out = append(out, c.style(terminal.Red, "  It can send the files that it reads to "+hosts+"."))
	case len(w.Hosts) > 0 || w.AnyHost:
		out = append(out, c.style(terminal.Yellow, "  It can send what the model tells it to "+hosts+"."))
	}
	return out
}

// long returns the text that "?" shows after the short card: digests, keys and all texts of
// the module in full.
func (c card) long() string {
	var b strings.Builder
	r := c.review
	text := func(title, text string) {
		for i, row := range terminal.Wrap(title, c.width-5) {
			fmt.Fprintln(&b, c.style(terminal.Bold, strings.Repeat("  ", 1+min(i, 1))+row))
		}
		b.WriteString(prompt.View{Width: c.width, Color: c.color}.Text(text, true))
	}
	lines := func(title, text, end string) {
		rows := terminal.Wrap(terminal.Line(text), c.width-titleColumns-4-len(end))
		for i, row := range rows {
			if i < len(rows)-1 {
				row += end
			}
			fmt.Fprintf(&b, "  %-*s %s\n", titleColumns, title, row)
			title = ""
		}
	}
	line := func(title, text string) { lines(title, text, "") }
	command := func(text string) { lines("", text, ` \`) } // to be copied
	b.WriteByte('\n')
	line("sha256", r.Record.Digest)
	if r.Record.ManifestDigest != "" {
		line("manifest", strings.TrimPrefix(r.Record.ManifestDigest, "sha256:"))
	}
	for _, k := range r.Record.Keys {
		line("key", fmt.Sprintf("%s, of %s", k, r.Record.Signer))
	}
	for _, k := range r.Verdict.Unknown {
		line("key", k.String())
		line("", "it belongs to nobody that you know; if you know the owner:")
		command(fmt.Sprintf("stockade tool trust add WHO %s --namespace %s", k, cmp.Or(r.Record.Repository, "file:"+r.Record.Manifest.Name)))
	}
	if r.Record.BaseDigest != "" {
		line("original", r.Record.BaseDigest)
	}
	if w := registry.WantsOf(r.Record.Manifest); w.Inferred && !w.Nothing() {
		line("to allow it", "for example:")
		command("stockade tool grant " + r.Record.Name + " " + grantExample(w, "."))
		line("describe it", "with what its tools do and need: `stockade help plugins`")
	} else if !w.Nothing() {
		line("narrower", "[o] now, and then for example:")
		command("stockade tool grant " + r.Record.Name + " " + grantExample(w, "."))
	}
	text("its source:", r.Record.Source)
	for _, note := range r.Record.Manifest.Notes {
		text("note:", note)
	}
	if config := r.Record.Manifest.Config; len(config) > 0 {
		text("its configuration:", configLines(config))
	}
	if shown := displayVersion(r.Record.Manifest); r.Record.Manifest.Version != shown && r.Record.Manifest.Version != "" {
		text("its version, in its own words:", r.Record.Manifest.Version)
	}
	for _, change := range r.Changes {
		text(change.Title+":", strings.Trim(prefixed("- ", change.Before)+prefixed("+ ", change.After), "\n"))
	}
	for _, s := range r.Record.Manifest.Tools {
		asks := "asks for " + capabilitiesText(s.Capabilities)
		if r.Record.Manifest.Inferred {
			asks = "does not say what it needs"
		}
		text(fmt.Sprintf("%s_%s %s, and says:", r.Record.Name, s.Name, asks), s.Description)
		text("its arguments:", indented(s.Parameters))
		if s.Run != nil {
			text("how it is run:", runLines(*s.Run))
		}
	}
	return b.String() + "\n"
}

// foreignKind names the kind of a module that was made for another host; empty: the module was
// made for this program.
func foreignKind(r store.Record) string {
	kind := r.Manifest.Kind()
	if kind != "" && r.BaseDigest != "" {
		kind += ", which you have described"
	}
	return kind
}

// runLines describes how a tool runs its program, one property a line.
func runLines(r tool.Run) string {
	var out []string
	add := func(what string, v any) { out = append(out, fmt.Sprintf("%-9s %s", what, tool.Marshal(v))) }
	if r.Function != "" {
		add("function", r.Function)
	}
	if len(r.Args) > 0 {
		add("args", r.Args)
	}
	if r.Stdin != "" {
		add("stdin", r.Stdin)
	}
	if r.Input != "" {
		add("input", r.Input)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		add("env", name+"="+r.Env[name])
	}
	if out == nil {
		return "without arguments"
	}
	return strings.Join(out, "\n")
}

// warnOptionArgs prints warnings about tools of a module that let an argument of a call become
// an option of the program that the tool runs. It prints 8, and the number of the others.
func (s *stdio) warnOptionArgs(m tool.Manifest) {
	const most = 8
	n := 0
	for _, t := range m.Tools {
		if t.Run == nil {
			continue
		}
		for _, w := range t.Run.Warnings() {
			if n++; n <= most {
				s.note("warning: %s: %s", t.Name, w)
			}
		}
	}
	switch {
	case n > most:
		s.hint("and %s; write \"--\" before such values, or --NAME={NAME}", humanize.Plural(n-most, "more warning"))
	case n > 0:
		s.hint("write \"--\" before such values, or --NAME={NAME}")
	}
}

func configLines(config map[string]string) string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		out = append(out, fmt.Sprintf("%s = %s", key, tool.Marshal(config[key])))
	}
	return strings.Join(out, "\n")
}

// suffixed returns the noun, followed by " 1 of n" if n is more than 1.
func suffixed(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return fmt.Sprintf("%s 1 of %d", noun, n)
}

// prefixed puts a mark before each line of a text, and a newline at its end. An empty text
// stays empty.
func prefixed(mark, text string) string {
	if text == "" {
		return ""
	}
	return mark + strings.ReplaceAll(text, "\n", "\n"+mark) + "\n"
}

func indented(data json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, data, "", "  ") != nil {
		return string(data)
	}
	return out.String()
}

func toolNames(r *registry.Review) (out []string) {
	for _, s := range r.Record.Manifest.Tools {
		out = append(out, r.Record.Name+"_"+s.Name)
	}
	return out
}

// signedBy describes the signer of a module, also an unknown one.
func signedBy(v trust.Verdict) string {
	switch {
	case v.Signer != "":
		return v.Signer + ", whom you know"
	case len(v.Unknown) > 0:
		return fmt.Sprintf("a key that you do not know  (%.20s...)", v.Unknown[0].ID())
	case len(v.Unread) > 0:
		return "unknown: signed in a form that this program does not read: " + terminal.Line(v.Unread[0])
	case v.UnknownCosign:
		return "a key that you do not know, with cosign"
	}
	return "nobody"
}

func allowanceText(a tool.Allowance) string {
	var out []string
	for _, d := range a.Read {
		out = append(out, d+" (read)")
	}
	for _, d := range a.Write {
		out = append(out, d+" (read and change)")
	}
	out = append(out, a.Hosts...)
	for _, s := range a.Secrets {
		out = append(out, "the secret "+s)
	}
	if a.Exec {
		out = append(out, "commands (each is asked about)")
	}
	if a.Store {
		out = append(out, "a store (which its other tools read)")
	}
	if out == nil {
		return "nothing"
	}
	return strings.Join(out, ", ")
}
