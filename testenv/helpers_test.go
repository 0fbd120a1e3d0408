package testenv_test

import "strings"

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }
