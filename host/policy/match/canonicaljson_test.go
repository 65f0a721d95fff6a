package match

import "testing"

func TestPlainNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "0e9": "0", "1": "1", "10": "10", "1e1": "10", "1E+1": "10", "100e-1": "10", "1.50": "1.5", "-1.5e0": "-1.5", "15e-1": "1.5", "0.05": "0.05", "5e-2": "0.05",
		"12345678901234567890": "12345678901234567890", "1e41": "1e41", "10e40": "1e41", "1e-41": "1e-41", "-1e400": "-1e400", "1e99999999999999999999": "1e99999999999999999999",
	} {
		if got := canonicalNumber(in); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
