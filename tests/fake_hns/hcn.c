/* computenetwork.dll: the functions of HCN v2, as Microsoft publishes them. */
#include <stdio.h>
#include <string.h>

#include "service.h"
#ifdef _WIN32
#include <computenetwork.h> /* so that the compiler compares */
#endif

static HRESULT refused(const char *function, HRESULT result, PWSTR *record) {
    char code[16];
    snprintf(code, sizeof code, "%u", (unsigned)result);
    value *document = json_object();
    json_set(document, "Success", json_literal("false"));
    json_set(document, "Error", json_of(explanation(result)));
    json_set(document, "ErrorCode", json_literal(code));
    hand_out(function, record, json_text(document));
    return result;
}

/* Notes the call, and says whether it shall fail before anything is done. */
static HRESULT begun(const char *function, const char *about) {
    HRESULT result = injected(joined(function, " ", about, NULL));
    journal("%s %s%s", function, about, result != DONE ? " (refused on demand)" : "");
    return result;
}

static const char *kind_of(char handle) { return handle == 'N' ? NETWORKS : handle == 'E' ? ENDPOINTS : NAMESPACES; }

static value *request_of(const char *function, PCWSTR text, HRESULT *result) {
    const char *narrowed = narrow(function, text);
    value *request = narrowed == NULL ? NULL : json_parse(narrowed);
    if (narrowed != NULL && request == NULL) bad(function, "a text is no JSON");
    if (request == NULL) *result = narrowed == NULL ? BAD_POINTER : BAD_JSON;
    return request;
}

static bool versioned(const char *function, const value *request) {
    const value *major = json_member(json_member(request, "SchemaVersion"), "Major");
    if (major == NULL) bad(function, "the document has no SchemaVersion");
    return major != NULL;
}

static HRESULT enumerated(const char *function, char kind, PCWSTR query, PWSTR *into, PWSTR *record) {
    HRESULT result = DONE;
    if (into == NULL) return refused(function, BAD_POINTER, record);
    value *request = request_of(function, query, &result);
    if (request == NULL) return refused(function, result, record);
    result = begun(function, json_text(request));
    if (result != DONE) return refused(function, result, record);
    const char *filter = json_word(request, "Filter");
    const value *wanted = *filter == 0 ? NULL : json_parse(filter);
    if (!versioned(function, request) || (*filter != 0 && wanted == NULL)) return refused(function, BAD_JSON, record);
    value *state = open_state(), *ids = json_list();
    for (const value *one = all_of(state, kind_of(kind))->first; one != NULL; one = one->next)
        if (passes(one, wanted)) json_append(ids, json_of(json_word(one, "ID")));
    close_state(state, false);
    hand_out(function, into, json_text(ids));
    return DONE;
}

static HRESULT created(const char *function, char kind, const char *network, REFGUID id, PCWSTR settings, void **into, PWSTR *record) {
    HRESULT result = DONE;
    if (id == NULL || into == NULL) return refused(function, BAD_POINTER, record);
    value *request = request_of(function, settings, &result), *made = NULL;
    if (request == NULL) return refused(function, result, record);
    result = begun(function, json_text(request));
    if (result != DONE) return refused(function, result, record);
    if (!versioned(function, request)) return refused(function, BAD_JSON, record);
    value *state = open_state();
    if (kind == 'N') result = add_network(state, request, guid_text(id), &made);
    if (kind == 'E') result = add_endpoint(state, network, request, guid_text(id), &made);
    if (kind == 'S') result = add_namespace(state, request, guid_text(id), &made);
    if (result == DONE) *into = open_handle(kind, json_word(made, "ID"));
    close_state(state, result == DONE);
    return result == DONE ? DONE : refused(function, result, record);
}

static HRESULT opened(const char *function, char kind, REFGUID id, void **into, PWSTR *record) {
    if (id == NULL || into == NULL) return refused(function, BAD_POINTER, record);
    const char *identity = guid_text(id);
    HRESULT result = begun(function, identity);
    value *state = open_state(), *object = found(state, kind_of(kind), identity);
    if (result == DONE && object == NULL) result = not_found(kind_of(kind));
    if (result == DONE) *into = open_handle(kind, json_word(object, "ID"));
    close_state(state, false);
    return result == DONE ? DONE : refused(function, result, record);
}

static HRESULT changed(const char *function, char kind, const void *handle, PCWSTR text, PWSTR *record) {
    HRESULT result = DONE;
    const char *identity = of_handle(function, kind, handle);
    if (identity == NULL) return refused(function, BAD_HANDLE, record);
    value *request = request_of(function, text, &result);
    if (request == NULL) return refused(function, result, record);
    result = begun(function, joined(identity, " ", json_text(request), NULL));
    value *state = open_state(), *object = found(state, kind_of(kind), identity);
    if (result == DONE) result = object == NULL ? not_found(kind_of(kind)) : change(state, kind_of(kind), object, request);
    close_state(state, result == DONE);
    return result == DONE ? DONE : refused(function, result, record);
}

static HRESULT queried(const char *function, char kind, const void *handle, PCWSTR query, PWSTR *into, PWSTR *record) {
    HRESULT result = DONE;
    const char *identity = of_handle(function, kind, handle);
    if (identity == NULL) return refused(function, BAD_HANDLE, record);
    if (into == NULL) return refused(function, BAD_POINTER, record);
    value *request = request_of(function, query, &result);
    if (request == NULL) return refused(function, result, record);
    result = begun(function, identity);
    if (result == DONE && !versioned(function, request)) result = BAD_JSON;
    value *state = open_state(), *object = found(state, kind_of(kind), identity);
    if (result == DONE && object == NULL) result = not_found(kind_of(kind));
    close_state(state, false);
    if (result != DONE) return refused(function, result, record);
    hand_out(function, into, json_text(object));
    return DONE;
}

static HRESULT deleted(const char *function, char kind, REFGUID id, PWSTR *record) {
    if (id == NULL) return refused(function, BAD_POINTER, record);
    HRESULT result = begun(function, guid_text(id));
    value *state = open_state();
    if (result == DONE) result = removed(state, kind_of(kind), guid_text(id));
    close_state(state, result == DONE);
    return result == DONE ? DONE : refused(function, result, record);
}

#define FUNCTIONS(One, Many, letter)                                                                                                 \
    EXPORTED HRESULT WINAPI HcnEnumerate##Many(PCWSTR query, PWSTR *into, PWSTR *record) {                                           \
        return enumerated(__func__, letter, query, into, record);                                                                    \
    }                                                                                                                                \
    EXPORTED HRESULT WINAPI HcnOpen##One(REFGUID id, void **into, PWSTR *record) { return opened(__func__, letter, id, into, record); } \
    EXPORTED HRESULT WINAPI HcnModify##One(void *handle, PCWSTR request, PWSTR *record) {                                            \
        return changed(__func__, letter, handle, request, record);                                                                   \
    }                                                                                                                                \
    EXPORTED HRESULT WINAPI HcnQuery##One##Properties(void *handle, PCWSTR query, PWSTR *into, PWSTR *record) {                      \
        return queried(__func__, letter, handle, query, into, record);                                                               \
    }                                                                                                                                \
    EXPORTED HRESULT WINAPI HcnDelete##One(REFGUID id, PWSTR *record) { return deleted(__func__, letter, id, record); }              \
    EXPORTED HRESULT WINAPI HcnClose##One(void *handle) { return close_handle(__func__, letter, handle); }

FUNCTIONS(Network, Networks, 'N')
FUNCTIONS(Endpoint, Endpoints, 'E')
FUNCTIONS(Namespace, Namespaces, 'S')

EXPORTED HRESULT WINAPI HcnCreateNetwork(REFGUID id, PCWSTR settings, void **into, PWSTR *record) {
    return created(__func__, 'N', "", id, settings, into, record);
}

EXPORTED HRESULT WINAPI HcnCreateNamespace(REFGUID id, PCWSTR settings, void **into, PWSTR *record) {
    return created(__func__, 'S', "", id, settings, into, record);
}

EXPORTED HRESULT WINAPI HcnCreateEndpoint(void *network, REFGUID id, PCWSTR settings, void **into, PWSTR *record) {
    const char *identity = of_handle(__func__, 'N', network);
    if (identity == NULL) return refused(__func__, BAD_HANDLE, record);
    return created(__func__, 'E', identity, id, settings, into, record);
}
