package testenv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/sr"
)

// handle answers a request, checking compatibility where a real registry does: before it stores a new
// version, and where it is asked to.
//
//	POST /subjects/{subject}/versions                         409 when incompatible
//	POST /compatibility/subjects/{subject}/versions[/{version}]   {"is_compatible": ...}
func (r *FakeRegistry) handle(w http.ResponseWriter, req *http.Request) {
	parts := strings.Split(strings.Trim(req.URL.EscapedPath(), "/"), "/")
	registers := len(parts) == 3 && parts[0] == "subjects" && parts[2] == "versions"
	asks := len(parts) >= 4 && parts[0] == "compatibility"
	if req.Method == http.MethodGet && len(parts) == 2 && parts[0] == "config" &&
		!req.URL.Query().Has("defaultToGlobal") {
		// Confluent's answers 404 for a subject without a level of its own; the store's default is
		// the global level.
		req.URL.RawQuery = "defaultToGlobal=false"
	}
	if r.options.Compatible == nil || req.Method != http.MethodPost || !registers && !asks {
		r.registry.Handler().ServeHTTP(w, req)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		answerError(w, http.StatusBadRequest, http.StatusBadRequest, err.Error())
		return
	}
	subject, version := parts[1], ""
	if asks {
		subject = parts[2]
	}
	if len(parts) == 5 {
		version = parts[4]
	}
	if subject, err = url.PathUnescape(subject); err != nil {
		answerError(w, http.StatusBadRequest, http.StatusBadRequest, err.Error())
		return
	}
	reason, err := r.incompatible(subject, version, body)
	switch {
	case err != nil:
		answerError(w, http.StatusUnprocessableEntity, sr.ErrInvalidSchema.Code, err.Error())
	case asks:
		answer := map[string]any{"is_compatible": reason == ""}
		if reason != "" && req.URL.Query().Get("verbose") == "true" {
			answer["messages"] = []string{reason}
		}
		answerJSON(w, http.StatusOK, answer)
	case reason != "":
		answerError(w, http.StatusConflict, http.StatusConflict,
			"Schema being registered is incompatible with an earlier schema: "+reason)
	default:
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.registry.Handler().ServeHTTP(w, req)
	}
}

// incompatible returns why the Avro schema in body may not follow what the subject holds, or "". A
// version other than "latest" and "" is the only one that is compared.
func (r *FakeRegistry) incompatible(subject, version string, body []byte) (string, error) {
	var request sr.Schema
	if err := json.Unmarshal(body, &request); err != nil {
		return "", err
	}
	if _, err := r.options.Compatible(sr.CompatNone, request.Schema, ""); err != nil {
		return "", err
	}
	level, versions, err := r.subjectState(subject)
	if err != nil || len(versions) == 0 || level == sr.CompatNone {
		return "", err
	}
	for _, old := range versions {
		if old.Schema.Schema == request.Schema {
			return "", nil // registered already: answered with its id
		}
	}
	transitive := slices.Contains([]sr.CompatibilityLevel{
		sr.CompatBackwardTransitive, sr.CompatForwardTransitive, sr.CompatFullTransitive,
	}, level)
	for _, old := range slices.Backward(versions) {
		if version != "" && version != "latest" && version != fmt.Sprint(old.Version) {
			continue
		}
		reason, err := r.options.Compatible(level, request.Schema, old.Schema.Schema)
		if err != nil {
			return "", err
		}
		if reason != nil {
			return fmt.Sprintf("version %d of %s, level %v: %v", old.Version, subject, level, reason), nil
		}
		if !transitive {
			break
		}
	}
	return "", nil
}

// subjectState reads the level that holds for a subject and its versions, oldest first.
func (r *FakeRegistry) subjectState(subject string) (sr.CompatibilityLevel, []sr.SubjectSchema, error) {
	var config struct {
		Level sr.CompatibilityLevel `json:"compatibilityLevel"`
	}
	path := "/config/" + url.PathEscape(subject) + "?defaultToGlobal=true"
	if _, err := r.read(path, &config); err != nil {
		return 0, nil, err
	}
	var numbers []int
	found, err := r.read("/subjects/"+url.PathEscape(subject)+"/versions", &numbers)
	if err != nil || !found {
		return config.Level, nil, err
	}
	var versions []sr.SubjectSchema
	for _, number := range numbers {
		if version, ok := r.registry.GetSchema(subject, number); ok {
			versions = append(versions, version)
		}
	}
	return config.Level, versions, nil
}

// read asks the store; found is false where it answers 404.
func (r *FakeRegistry) read(path string, into any) (found bool, err error) {
	answer := httptest.NewRecorder()
	r.registry.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	if answer.Code == http.StatusNotFound {
		return false, nil
	}
	if answer.Code != http.StatusOK {
		return false, fmt.Errorf("GET %s: status %d: %s", path, answer.Code, answer.Body)
	}
	return true, json.Unmarshal(answer.Body.Bytes(), into)
}
