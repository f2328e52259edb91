/* vmcompute.dll: HNS v1 behind one function, and what of the compute service adds an endpoint to a container. */
#include <stdio.h>
#include <string.h>

#include "service.h"

/* --- HNSCall ------------------------------------------------------------------------------------------------------ */

typedef struct {
    const char *kind;     /* NETWORKS, ENDPOINTS; "" for another path */
    const char *identity; /* "" for all */
    const char *verb;     /* "attach", "detach", "" */
} place;

static place read_path(const char *path) {
    static const struct {
        const char *prefix, *kind;
    } known[] = {{"/networks/", NETWORKS}, {"/endpoints/", ENDPOINTS}};
    for (int at = 0; at < 2; at++) {
        if (strncmp(path, known[at].prefix, strlen(known[at].prefix)) != 0) continue;
        char *identity = joined(path + strlen(known[at].prefix), NULL), *slash = strchr(identity, '/');
        if (slash != NULL) *slash = 0;
        return (place){known[at].kind, identity, slash != NULL ? slash + 1 : ""};
    }
    return (place){"", "", ""};
}

static value *shown(const value *state, const char *kind, const value *object) {
    return strcmp(kind, NETWORKS) == 0 ? network_v1(object) : endpoint_v1(state, object);
}

static HRESULT posted(value *state, place at, value *request, value **object) {
    if (*at.identity == 0) {
        if (strcmp(at.kind, NETWORKS) == 0) return add_network(state, network_of_v1(request), "", object);
        value *endpoint = endpoint_of_v1(request);
        return add_endpoint(state, json_word(endpoint, "HostComputeNetwork"), endpoint, "", object);
    }
    *object = found(state, at.kind, at.identity);
    if (*object == NULL) return not_found(at.kind);
    if (same_word(at.verb, "attach")) {
        if (json_member(*object, "AttachedTo") != NULL) return ALREADY_ATTACHED;
        json_set(*object, "AttachedTo", json_of(json_word(request, "SystemType")));
        return DONE;
    }
    if (same_word(at.verb, "detach")) {
        json_remove(*object, "AttachedTo");
        return DONE;
    }
    if (strcmp(at.kind, ENDPOINTS) != 0) return UNSUPPORTED;
    value *policies = json_member(endpoint_of_v1(request), "Policies");
    json_set(*object, "Policies", json_copy(policies));
    return DONE;
}

static HRESULT served(value *state, const char *method, const char *path, value *request, value **output) {
    place at = read_path(path);
    if (*at.kind == 0) return NOT_FOUND;
    value *object = found(state, at.kind, at.identity);
    if (same_word(method, "GET") && *at.identity == 0) {
        *output = json_list();
        for (const value *one = all_of(state, at.kind)->first; one != NULL; one = one->next) json_append(*output, shown(state, at.kind, one));
        return DONE;
    }
    if (same_word(method, "POST")) {
        if (request == NULL || request->kind != OBJECT) return BAD_JSON;
        HRESULT result = posted(state, at, request, &object);
        if (result == DONE) *output = shown(state, at.kind, object);
        return result;
    }
    if (object == NULL) return not_found(at.kind);
    if (same_word(method, "DELETE")) return removed(state, at.kind, at.identity);
    if (!same_word(method, "GET")) return UNSUPPORTED;
    *output = shown(state, at.kind, object);
    return DONE;
}

static const char *answer(HRESULT result, value *output) {
    char code[16];
    snprintf(code, sizeof code, "%u", (unsigned)result);
    value *document = json_object();
    json_set(document, "Success", json_literal(result == DONE ? "true" : "false"));
    if (output != NULL) json_set(document, "Output", output);
    if (result != DONE) {
        json_set(document, "Error", json_of(explanation(result)));
        json_set(document, "ErrorCode", json_literal(code));
    }
    return json_text(document);
}

EXPORTED HRESULT WINAPI HNSCall(PCWSTR method, PCWSTR path, PCWSTR object, PWSTR *response) {
    const char *verb = narrow(__func__, method), *where = narrow(__func__, path), *what = narrow(__func__, object);
    if (verb == NULL || where == NULL || what == NULL || response == NULL) return BAD_POINTER;
    const char *call = joined(__func__, " ", verb, " ", where, *what == 0 ? "" : " ", what, NULL);
    value *request = *what == 0 ? NULL : json_parse(what), *output = NULL;
    HRESULT result = injected(call);
    journal("%s%s", call, result != DONE ? " (refused on demand)" : "");
    if (*what != 0 && request == NULL) bad(__func__, "a text is no JSON");
    if (result == DONE) {
        value *state = open_state();
        result = served(state, verb, where, request, &output);
        close_state(state, result == DONE && !same_word(verb, "GET"));
    } else if (((uint32_t)result & 0xFFFF0000) == 0x80010000) {
        return result; /* of RPC: the service itself could not be reached, and there is no answer */
    }
    hand_out(__func__, response, answer(result, output));
    return DONE;
}

/* --- the compute service ------------------------------------------------------------------------------------------ */

EXPORTED HRESULT WINAPI HcsOpenComputeSystem(PCWSTR id, void **system, PWSTR *result) {
    const char *identity = narrow(__func__, id);
    if (identity == NULL || system == NULL) return BAD_POINTER;
    (void)result;
    journal("%s %s", __func__, identity);
    HRESULT outcome = injected(joined(__func__, " ", identity, NULL));
    value *state = open_state();
    if (outcome == DONE) outcome = NO_SYSTEM;
    for (const value *one = all_of(state, CONTAINERS)->first; one != NULL; one = one->next)
        if (outcome == NO_SYSTEM && same_word(one->text, identity)) outcome = DONE;
    close_state(state, false);
    if (outcome == DONE) *system = open_handle('C', identity);
    return outcome;
}

EXPORTED HRESULT WINAPI HcsModifyComputeSystem(void *system, PCWSTR configuration, PWSTR *result) {
    const char *identity = of_handle(__func__, 'C', system), *text = narrow(__func__, configuration);
    if (identity == NULL) return BAD_HANDLE;
    if (text == NULL) return BAD_POINTER;
    journal("%s %s %s", __func__, identity, text);
    const value *request = json_parse(text);
    if (!same_word(json_word(request, "ResourceType"), "Network") || !same_word(json_word(request, "RequestType"), "Add")) return BAD_ARGUMENT;
    HRESULT outcome = injected(joined(__func__, " ", identity, NULL));
    value *state = open_state(), *endpoint = found(state, ENDPOINTS, json_word(request, "Settings"));
    if (outcome == DONE && endpoint == NULL) outcome = NO_ENDPOINT;
    if (outcome == DONE) {
        value *shared = json_member(endpoint, "SharedContainers");
        if (shared == NULL) json_set(endpoint, "SharedContainers", shared = json_list());
        json_append(shared, json_of(identity));
    } else {
        hand_out(__func__, result, answer(outcome, NULL));
    }
    close_state(state, outcome == DONE);
    return outcome;
}

EXPORTED HRESULT WINAPI HcsCloseComputeSystem(void *system) { return close_handle(__func__, 'C', system); }
