#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <io.h>
#define nap() Sleep(5)
#else
#include <time.h>
#include <unistd.h>
#define nap() nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL)
#endif

#define LONGEST_WAIT 4000 /* naps */

static const char *lock_file(void) { return joined(state_file(), ".lock", NULL); }

static value *read_state(void) {
    FILE *file = fopen(state_file(), "rb");
    if (file == NULL) return json_object();
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    char *text = calloc((size_t)length + 1, 1);
    if (fread(text, 1, (size_t)length, file) != (size_t)length) abort();
    fclose(file);
    value *state = json_parse(text);
    if (state == NULL) bad("the state file", "is no JSON");
    return state != NULL ? state : json_object();
}

value *open_state(void) {
    int descriptor = -1;
    for (int tries = 0; descriptor < 0; tries++) {
        descriptor = open(lock_file(), O_CREAT | O_EXCL | O_WRONLY, 0600);
        if (descriptor >= 0) break;
        if (tries == LONGEST_WAIT) {
            bad("the lock file", "is somebody else's for too long");
            break;
        }
        nap();
    }
    if (descriptor >= 0) close(descriptor);
    value *state = read_state();
    const char *kinds[] = {NETWORKS, ENDPOINTS, NAMESPACES, CONTAINERS};
    for (int at = 0; at < 4; at++)
        if (json_member(state, kinds[at]) == NULL) json_set(state, kinds[at], json_list());
    return state;
}

void close_state(value *state, bool changed) {
    if (changed) {
        FILE *file = fopen(state_file(), "wb");
        if (file == NULL) abort();
        fputs(json_text(state), file);
        fclose(file);
    }
    remove(lock_file());
}

/* --- failures on demand ------------------------------------------------------------------------------------------- */

#define MOST_RULES 16

HRESULT injected(const char *call) {
    static const char *known = "";
    static int used[MOST_RULES];
    const char *rules = setting("TORTIE_FAKE_HNS_FAIL");
    if (strcmp(rules, known) != 0) {
        known = joined(rules, NULL);
        memset(used, 0, sizeof used);
    }
    for (int at = 0; at < MOST_RULES && *rules != 0; at++) {
        size_t length = strcspn(rules, "=");
        if (rules[length] == 0) return BAD_ARGUMENT;
        char *end;
        HRESULT result = (HRESULT)strtoul(rules + length + 1, &end, 16);
        long often = *end == 'x' ? strtol(end + 1, &end, 10) : 0;
        if (strncmp(call, rules, length) == 0 && (often == 0 || used[at]++ < often)) return result;
        rules = *end == ';' ? end + 1 : end;
    }
    return DONE;
}

HRESULT not_found(const char *kind) {
    if (strcmp(kind, NETWORKS) == 0) return NO_NETWORK;
    return strcmp(kind, ENDPOINTS) == 0 ? NO_ENDPOINT : NOT_FOUND;
}

const char *explanation(HRESULT result) {
    static const struct {
        HRESULT result;
        const char *text;
    } known[] = {
        {NO_NETWORK, "The network was not found. "},
        {NO_ENDPOINT, "The endpoint was not found. "},
        {NO_SUBNET, "The network does not have a subnet for this endpoint. "},
        {BAD_NETWORK, "The provided network configuration is invalid or missing parameters. "},
        {BAD_NETWORK_TYPE, "Invalid network type. "},
        {BAD_POLICY, "The provided policy configuration is invalid or missing parameters. "},
        {BAD_POLICY_TYPE, "Invalid policy type. "},
        {NETWORK_EXISTS, "A network with this name already exists. "},
        {ALREADY_ATTACHED, "The specified endpoint is already attached. "},
        {UNSUPPORTED, "The specified request is unsupported. "},
        {BAD_JSON, "Invalid JSON document string. "},
        {ADDRESS_TAKEN, "The address provided is invalid or reserved. "},
        {NOT_FOUND, "Element not found. "},
        {NO_SYSTEM, "A virtual machine or container with the specified identifier does not exist. "},
    };
    for (size_t at = 0; at < sizeof known / sizeof *known; at++)
        if (known[at].result == result) return known[at].text;
    return "Unspecified error. ";
}
