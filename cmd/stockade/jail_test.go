package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
)

// Whatever is lacking, the person reads why, and once what to do about it.
func TestWhatIsLackingIsSaidWithARemedy(t *testing.T) {
	for _, cause := range []jail.Cause{
		jail.CausePlatform, jail.CauseHelper, jail.CauseLandlock, jail.CauseMaxNamespaces, jail.CauseUserNamespace, jail.CauseAppArmor, jail.CauseSeccomp, "",
	} {
		for tier := policy.TierNone; tier < policy.MaxTier; tier++ {
			var out bytes.Buffer
			lack := jail.Unavailable{Tier: tier + 1, Mechanism: "namespaces", Why: "it failed\x1b", Cause: cause}
			if err := showJail(&stdio{out: &out}, jail.Tiers{Tier: tier, Mechanism: "this", Unavailable: []jail.Unavailable{lack, lack}}, policy.Explanation{}); err != nil {
				t.Fatal(err)
			}
			text, hints := out.String(), 1
			if cause == "" {
				hints = 0
			}
			if strings.Count(text, "it failed<U+001B>\n") != 2 || strings.Count(text, "hint: ") != hints || strings.Contains(text, "hint: \n") {
				t.Errorf("%q, %s: it says %s", cause, tier, text)
			}
			for line := range strings.Lines(text) {
				if len(line) > 81 {
					t.Errorf("%q, %s: %d columns: %s", cause, tier, len(line)-1, line)
				}
			}
		}
	}
}
