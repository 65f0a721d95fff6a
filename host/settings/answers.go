package settings

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// Answer is a remembered rule: a person's answer "always" or "project" to a question.
type Answer struct {
	Rule    string    `toml:"rule"`              // rule in the form of [policy.ParseRule]
	Project string    `toml:"project,omitempty"` // workspace in which it holds; empty: any workspace
	Added   time.Time `toml:"added"`
	// The binding of the rule, see [policy.Binding]. When a part changes, the rule applies no more.
	Module       string         `toml:"module"`
	ABI          string         `toml:"abi,omitempty"`
	Description  string         `toml:"description_sha256,omitempty"`
	Schema       string         `toml:"schema_sha256,omitempty"`
	Capabilities string         `toml:"capabilities_sha256,omitempty"`
	Texts        tool.SpecTexts `toml:"said"`
}

// ID returns a short name for the answer, which Revoke takes. It depends on the rule, the
// module and the project.
func (a Answer) ID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", a.Rule, a.Module, a.Project))
	return hex.EncodeToString(sum[:4])
}

func (d Dirs) answers() entryFile[Answer] {
	return entryFile[Answer]{
		path: d.AnswersFile(), table: "allow",
		check: func(a Answer) bool { return a.Rule != "" && a.Module != "" }, needs: "rule and module",
		head: `# What was answered with "always" or "project" at a prompt. "stockade policy show"
# lists it; "stockade policy revoke" removes an entry, to be asked again.

`,
	}
}

// Answers returns the remembered answers. It fails if anybody but the user could have written
// the file.
func (d Dirs) Answers() ([]Answer, error) { return d.answers().load() }

// add stores an answer. It replaces an earlier answer with the same rule and project.
func (d Dirs) add(a Answer) error {
	return d.answers().change(func(answers []Answer) []Answer {
		return append(slices.DeleteFunc(answers, func(old Answer) bool { return old.Rule == a.Rule && old.Project == a.Project }), a)
	})
}

// Revoke removes the answers whose ID or rule is word, and returns them.
func (d Dirs) Revoke(word string) (removed []Answer, err error) {
	return d.answers().remove(func(a Answer) bool { return a.ID() == word || a.Rule == word })
}

// unknownDigest stands for a missing digest and equals no digest, so that an incomplete answer
// does not apply.
const unknownDigest = "unknown"

// AllowRule returns the rule of the answer.
func (a Answer) AllowRule() (policy.Rule, error) {
	r, err := policy.ParseRule(a.Rule)
	if err != nil {
		return r, err
	}
	r.Project, r.Source = a.Project, policy.SourceUser
	r.Binding = policy.Binding{
		Module: a.Module, ABI: a.ABI, Capabilities: cmp.Or(a.Capabilities, unknownDigest),
		Description: cmp.Or(a.Description, unknownDigest), Schema: cmp.Or(a.Schema, unknownDigest),
		Texts: a.Texts,
	}
	if a.Module == string(tool.OriginBuiltin) {
		r.Binding.ABI = cmp.Or(a.ABI, unknownDigest)
	}
	return r, nil
}

// RememberedRules returns the rules of the remembered answers.
func (d Dirs) RememberedRules() ([]policy.Rule, error) {
	answers, err := d.Answers()
	if err != nil {
		return nil, err
	}
	var rules []policy.Rule
	for _, a := range answers {
		r, err := a.AllowRule()
		if err != nil {
			return nil, mistake("mend the file, or remove it to be asked again", "%s: %v", d.AnswersFile(), err)
		}
		r.Origin = d.AnswersFile() + ": " + a.ID()
		rules = append(rules, r)
	}
	return rules, nil
}

// Remember stores the rule of an answer "always" or "project". redact takes secrets out of a
// text: a rule that holds a secret is refused.
func (d Dirs) Remember(r policy.Rule, redact func(string) string) error {
	if redact(r.String()) != r.String() {
		return errors.New("the rule holds a secret, which is not written to a file")
	}
	return d.add(Answer{
		Rule: r.String(), Project: r.Project, Added: time.Now().UTC().Truncate(time.Second),
		Module: r.Binding.Module, ABI: r.Binding.ABI,
		Description: r.Binding.Description, Schema: r.Binding.Schema, Capabilities: r.Binding.Capabilities,
		Texts: r.Binding.Texts,
	})
}
