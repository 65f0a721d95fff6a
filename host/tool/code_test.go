package tool

import (
	"os"
	"strings"
	"testing"
)

func TestAuthorsAreToldTheCodesOfTheHost(t *testing.T) {
	page, err := os.ReadFile("../../wit/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, told, _ := strings.Cut(string(page), "Codes that are reserved for the host")
	for _, code := range hostCodes {
		if !strings.Contains(told, "`"+string(code)+"`") {
			t.Errorf("wit/README.md does not say that %s is the host's", code)
		}
	}
}
