package provider

import (
	"net/http"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		name, seconds, ms string
		want              time.Duration
	}{
		{"nothing", "", "", 0},
		{"seconds", "7", "", 7 * time.Second},
		{"a fraction", "0.5", "", 500 * time.Millisecond},
		{"milliseconds come first", "7", "1500", 1500 * time.Millisecond},
		{"a date", "Fri, 02 Jan 2026 03:05:05 GMT", "", time.Minute},
		{"a date that is past", "Fri, 02 Jan 2026 03:00:00 GMT", "", 0},
		{"less than nothing", "-5", "", 0},
		{"more than a Duration can hold", "1e300", "", 30 * 24 * time.Hour},
		{"no number", "NaN", "", 0},
		{"nonsense", "soon", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := http.Header{"Retry-After": {tt.seconds}, "Retry-After-Ms": {tt.ms}}
			if got := retryAfter(header, now); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
