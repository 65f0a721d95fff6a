package trust

import _ "golang.org/x/mod/semver"
