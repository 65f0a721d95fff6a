package main

import (
	"slices"
	"testing"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/door"
	"github.com/stockade-dev/stockade/host/jail"
)

func TestTheCachesOfTheConfigurationAreThoseOfTheJail(t *testing.T) {
	if got := config.Default().Bash.Caches; !slices.Equal(got, jail.CacheNames) {
		t.Errorf("by default there are %q, and the jail has %q", got, jail.CacheNames)
	}
}

func TestTheFactsOfTheConfigurationAreThoseOfTheDoor(t *testing.T) {
	if got := config.Default().Tools.SystemInfo; !slices.Equal(got, door.SystemFacts) {
		t.Errorf("by default there are %q, and the door has %q", got, door.SystemFacts)
	}
}
