package provider

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/stockade-dev/stockade/host/llm"
)

// RefusedImages holds images that a server or its model has refused, with the server's message.
// Such images are not sent again: they would be in every later request, and the conversation
// could not continue. See RATIONALE, "Why is an image sent behind the results, and not again
// once it was refused?" The zero value is ready. It is safe for concurrent use.
type RefusedImages struct {
	mu      sync.Mutex          // guards the fields below
	refused map[[32]byte]string // the server's message by SHA-256 of the image
	changes int                 // number of changes of refused
}

// Version returns a text that changes with every change of the refused images. It is a part of the
// version of a wire form.
func (s *RefusedImages) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.Itoa(s.changes)
}

// ImageOrText is a text or an image of a request.
type ImageOrText struct {
	Text  string
	Image *llm.Part // nil: it is a text
}

// Show returns images in the form of a request: each image after a line that names its source,
// of. Instead of an image that is left out or refused there is a line with the reason.
func (s *RefusedImages) Show(images []llm.Part, of string) (out []ImageOrText) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, image := range images {
		if image.Type != llm.ImagePart {
			continue
		}
		label := fmt.Sprintf("[image %d of %s]", i+1, of)
		reason, refused := s.refused[sha256.Sum256(image.Data)]
		switch {
		case len(image.Data) == 0:
			out = append(out, ImageOrText{Text: fmt.Sprintf("[image %d of %s was left out to save room; read it again if you need it]", i+1, of)})
		case refused:
			out = append(out, ImageOrText{Text: label}, ImageOrText{Text: "[it could not be sent: the server refused a request with it: " + reason + "]"})
		default:
			out = append(out, ImageOrText{Text: label}, ImageOrText{Image: &images[i]})
		}
	}
	return out
}

// SendWithFallback calls send, which sends a request with the entries. If the server refuses a
// request with images, it sends the request again without the images. If that succeeds, these
// images are never sent again; else it returns the first error.
func (s *RefusedImages) SendWithFallback(entries []*llm.Entry, send func() error) error {
	err := send()
	failure, ok := errors.AsType[*llm.ProviderError](err)
	if !ok || !aboutImages(failure) {
		return err
	}
	refused := s.refuse(entries, failure.Message)
	if len(refused) == 0 {
		return err
	}
	if send() != nil {
		s.forgive(refused)
		return err // the first error is the helpful one
	}
	return nil
}

// aboutImages reports whether an error may be about the images of a request. Few servers name
// images in the message, and some use these statuses for lack of better ones.
func aboutImages(failure *llm.ProviderError) bool {
	if failure.Code == llm.ContextExceeded {
		return false
	}
	switch failure.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	case http.StatusNotFound, http.StatusInternalServerError, http.StatusNotImplemented:
		return strings.Contains(strings.ToLower(failure.Message), "image")
	}
	return false
}

// refuse records the images of entries as refused, and returns the hashes of images that were not.
func (s *RefusedImages) refuse(entries []*llm.Entry, reason string) (refused [][32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[[32]byte]string{}
	}
	refuse := func(p llm.Part) {
		sum := sha256.Sum256(p.Data)
		if _, before := s.refused[sum]; p.Type == llm.ImagePart && len(p.Data) > 0 && !before {
			s.refused[sum] = reason
			refused = append(refused, sum)
		}
	}
	for _, e := range entries {
		for _, p := range e.Parts {
			refuse(p)
			for _, image := range p.Images {
				refuse(image)
			}
		}
	}
	if refused != nil {
		s.changes++
	}
	return refused
}

func (s *RefusedImages) forgive(refused [][32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sum := range refused {
		delete(s.refused, sum)
	}
	s.changes++
}
