package registry

import (
	"errors"
	"fmt"

	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/tool"
)

// Statement returns the statement that a signer of the module signs, without its times.
// repository is the repository from which people will add the module; empty: they add a file.
func Statement(mod *tool.Module, m tool.Manifest, repository string) sign.Statement {
	return sign.Statement{
		Repository: repository, Name: m.Name, Version: m.Version, Digest: "sha256:" + mod.Digest, Fingerprint: sign.Fingerprint(m.Fingerprint()),
	}
}

// CheckSignature returns an error if a signature cannot be published with a module in a
// repository. Any key may have signed, but the signature must be over these bytes.
func CheckSignature(envelope []byte, mod *tool.Module, repository string) error {
	signed, err := sign.Open(envelope)
	if err != nil {
		return err
	}
	st, _, err := signed.Verify(signed.ClaimedKeys())
	switch {
	case err != nil:
		return err
	case st.Digest != "sha256:"+mod.Digest:
		return errors.New("it is the signature of other bytes; the module was built again")
	case st.Repository != repository:
		return fmt.Errorf("it is for %q, and not for %q", st.Repository, repository)
	}
	return nil
}
