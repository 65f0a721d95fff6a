// Command random is a guest that returns random numbers from all sources of its runtime, and
// its idea of the time.
package main

import (
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/tool"
)

var (
	atInit = rand.Uint64()
	left   int
	began  = time.Now()
)

func init() {
	tool.Module("random", "0.1.0")
	tool.Register("random", "Say what is random.", random)
}

func main() {}

type none struct{}

type answer struct {
	Init   string `json:"init"`   // drawn before the snapshot
	Math   string `json:"math"`   // from math/rand
	Map    string `json:"map"`    // order in which a map is iterated
	Crypto string `json:"crypto"` // from crypto/rand
	Left   int    `json:"left"`   // number of calls in this instance
	Began  int64  `json:"began"`  // time of the initialisation, in Unix seconds
	Later  bool   `json:"later"`  // time has passed since then, by both clocks
}

func random(context.Context, none) (answer, error) {
	m := map[int]bool{}
	for i := range 40 {
		m[i] = true
	}
	var order []string
	for i := range m {
		order = append(order, strconv.Itoa(i))
	}
	var secret [16]byte
	if _, err := crand.Read(secret[:]); err != nil {
		return answer{}, err
	}
	left++
	return answer{
		Init:   strconv.FormatUint(atInit, 16),
		Math:   strconv.FormatUint(rand.Uint64(), 16) + strconv.FormatUint(rand.Uint64(), 16),
		Map:    strings.Join(order, " "),
		Crypto: hex.EncodeToString(secret[:]),
		Left:   left,
		Began:  began.Unix(),
		Later:  time.Since(began) > 0 && time.Now().Round(0).After(began),
	}, nil
}
