package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
)

// BuildGuest builds a guest of this repository as a native program.
func BuildGuest(guest, program string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./guests/"+guest)
	cmd.Dir = "../../.."
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the native program: %w\n%s", err, output)
	}
	return nil
}

// RunNative makes a call of such a program, on one core as in the sandbox, and returns
// the result.
func RunNative(program, dir string, args []byte) ([]byte, error) {
	cmd := exec.Command(program)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, bytes.NewReader(args), os.Stderr
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	return cmd.Output()
}
