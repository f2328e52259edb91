#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

value *all_of(value *state, const char *kind) { return json_member(state, kind); }

value *found(value *state, const char *kind, const char *identity) {
    for (value *one = all_of(state, kind)->first; one != NULL; one = one->next)
        if (same_word(json_word(one, "ID"), identity)) return one;
    return NULL;
}

bool passes(const value *object, const value *filter) {
    for (const value *wanted = filter == NULL ? NULL : filter->first; wanted != NULL; wanted = wanted->next)
        if (wanted->kind == TEXT && !same_word(json_word(object, wanted->name), wanted->text)) return false;
    return true;
}

static value *tagged(value *settings, const char *identity) {
    value *object = json_copy(settings);
    const char *own = json_word(object, "ID");
    json_set(object, "ID", json_of(*identity != 0 ? identity : *own != 0 ? own : fresh_guid()));
    return object;
}

/* --- policies ----------------------------------------------------------------------------------------------------- */

static HRESULT sound_policy(const value *policy) {
    static const struct {
        const char *type, *needed;
    } known[] = {
        {"ACL", "Action"},          {"OutBoundNAT", ""}, {"SDNRoute", "DestinationPrefix"}, {"ProviderAddress", "ProviderAddress"},
        {"HostRoute", ""},          {"VSID", ""},        {"PortMapping", ""},               {"QOS", ""},
        {"L2Driver", ""},           {"L4Proxy", ""},     {"L4WFPPROXY", ""},                {"PortName", ""},
        {"EncapOverhead", ""},      {"VLAN", ""},        {"SourceMacAddress", ""},          {"NetAdapterName", ""},
        {"RemoteSubnetRoute", ""},  {"DrMacAddress", ""}, {"AutomaticDNS", ""},             {"InterfaceConstraint", ""},
        {"SetPolicy", ""},          {"NetworkL4Proxy", ""},
    };
    const char *type = json_word(policy, "Type");
    for (size_t at = 0; at < sizeof known / sizeof *known; at++) {
        if (!same_word(type, known[at].type)) continue;
        const value *settings = json_member(policy, "Settings");
        if (*known[at].needed == 0) return DONE;
        return *json_word(settings, known[at].needed) != 0 ? DONE : BAD_POLICY;
    }
    return BAD_POLICY_TYPE;
}

static HRESULT sound_policies(const value *settings) {
    const value *policies = json_member(settings, "Policies");
    for (const value *one = policies == NULL ? NULL : policies->first; one != NULL; one = one->next) {
        HRESULT result = sound_policy(one);
        if (result != DONE) return result;
    }
    return DONE;
}

/* --- addresses (IPv4, as HNS has them for what Calico makes) ------------------------------------------------------ */

static bool read_address(const char *text, uint32_t *address) {
    unsigned part[4];
    char more;
    if (sscanf(text, "%3u.%3u.%3u.%3u%c", &part[0], &part[1], &part[2], &part[3], &more) != 4) return false;
    for (int at = 0; at < 4; at++)
        if (part[at] > 255) return false;
    *address = part[0] << 24 | part[1] << 16 | part[2] << 8 | part[3];
    return true;
}

static const char *own_address(const value *endpoint) {
    const value *all = json_member(endpoint, "IpConfigurations");
    return all == NULL ? "" : json_word(all->first, "IpAddress");
}

static bool within(const char *prefix, uint32_t address) {
    char base[64] = "";
    strncat(base, prefix, strcspn(prefix, "/") < 63 ? strcspn(prefix, "/") : 63);
    uint32_t start;
    int length = strchr(prefix, '/') == NULL ? -1 : atoi(strchr(prefix, '/') + 1);
    if (length < 0 || length > 32 || !read_address(base, &start)) return false;
    return length == 0 || (address ^ start) >> (32 - length) == 0;
}

/* The prefix of the network that has the address; NULL without one. */
static const char *subnet_of(const value *network, uint32_t address) {
    const value *ipams = json_member(network, "Ipams");
    for (const value *ipam = ipams == NULL ? NULL : ipams->first; ipam != NULL; ipam = ipam->next) {
        const value *subnets = json_member(ipam, "Subnets");
        for (const value *one = subnets == NULL ? NULL : subnets->first; one != NULL; one = one->next)
            if (within(json_word(one, "IpAddressPrefix"), address)) return json_word(one, "IpAddressPrefix");
    }
    return NULL;
}

static HRESULT sound_address(value *state, const value *network, const value *endpoint) {
    const char *own = own_address(endpoint);
    uint32_t address;
    if (*own == 0) return DONE;
    if (!read_address(own, &address)) return ADDRESS_TAKEN;
    const char *flags = json_member(endpoint, "Flags") == NULL ? "0" : json_member(endpoint, "Flags")->text;
    if (strcmp(flags, "1") != 0 && subnet_of(network, address) == NULL) return NO_SUBNET;
    for (const value *other = all_of(state, ENDPOINTS)->first; other != NULL; other = other->next)
        if (same_word(json_word(other, "HostComputeNetwork"), json_word(network, "ID")) && same_word(own_address(other), own))
            return ADDRESS_TAKEN;
    return DONE;
}

static void complete_endpoint(const value *network, value *endpoint) {
    uint32_t address = 0;
    char mac[24];
    bool addressed = read_address(own_address(endpoint), &address);
    const char *prefix = subnet_of(network, address);
    value *configuration = addressed ? json_member(endpoint, "IpConfigurations")->first : NULL;
    if (addressed && prefix != NULL && json_member(configuration, "PrefixLength") == NULL)
        json_set(configuration, "PrefixLength", json_literal(strchr(prefix, '/') + 1));
    snprintf(mac, sizeof mac, "00-15-%02X-%02X-%02X-%02X", address >> 24, address >> 16 & 0xFF, address >> 8 & 0xFF, address & 0xFF);
    if (*json_word(endpoint, "MacAddress") == 0) json_set(endpoint, "MacAddress", json_of(mac));
    if (json_member(endpoint, "Policies") == NULL) json_set(endpoint, "Policies", json_list());
}

/* --- the verbs ---------------------------------------------------------------------------------------------------- */

/* Of an overlay's distributed router, and of its tunnel's end. */
static value *own_policy(const char *type, const char *name, const char *text) {
    value *policy = json_object(), *settings = json_object();
    json_set(settings, name, json_of(text));
    json_set(policy, "Type", json_of(type));
    json_set(policy, "Settings", settings);
    return policy;
}

HRESULT add_network(value *state, value *settings, const char *identity, value **made) {
    static const char *types[] = {"L2Bridge", "Overlay", "NAT", "Transparent", "L2Tunnel", "ICS", "Internal", "Private"};
    const char *name = json_word(settings, "Name");
    bool known = false;
    for (size_t at = 0; at < sizeof types / sizeof *types; at++) known |= same_word(json_word(settings, "Type"), types[at]);
    if (!known) return BAD_NETWORK_TYPE;
    if (*name == 0) return BAD_NETWORK;
    for (const value *other = all_of(state, NETWORKS)->first; other != NULL; other = other->next)
        if (same_word(json_word(other, "Name"), name)) return NETWORK_EXISTS;
    HRESULT result = sound_policies(settings);
    if (result != DONE) return result;
    *made = tagged(settings, identity);
    const char *management = setting("TORTIE_FAKE_HNS_MANAGEMENT_IP");
    if (*management == 0) management = "192.0.2.10";
    json_set(*made, "ManagementIP", json_of(management));
    if (same_word(json_word(settings, "Type"), "Overlay")) {
        value *policies = json_member(*made, "Policies");
        if (policies == NULL) json_set(*made, "Policies", policies = json_list());
        json_append(policies, own_policy("DrMacAddress", "Address", "00-15-5D-AA-BB-CC"));
        json_append(policies, own_policy("ProviderAddress", "ProviderAddress", management));
    }
    json_append(all_of(state, NETWORKS), *made);
    return DONE;
}

HRESULT add_endpoint(value *state, const char *network, value *settings, const char *identity, value **made) {
    const value *parent = found(state, NETWORKS, network);
    if (parent == NULL) return NO_NETWORK;
    HRESULT result = sound_policies(settings);
    if (result == DONE) result = sound_address(state, parent, settings);
    if (result != DONE) return result;
    *made = tagged(settings, identity);
    json_set(*made, "HostComputeNetwork", json_of(json_word(parent, "ID")));
    complete_endpoint(parent, *made);
    json_append(all_of(state, ENDPOINTS), *made);
    return DONE;
}

HRESULT add_namespace(value *state, value *settings, const char *identity, value **made) {
    *made = tagged(settings, identity);
    if (found(state, NAMESPACES, json_word(*made, "ID")) != NULL) return (HRESULT)0x80070050; /* ERROR_FILE_EXISTS */
    if (json_member(*made, "Type") == NULL) json_set(*made, "Type", json_of("HostDefault"));
    if (json_member(*made, "Resources") == NULL) json_set(*made, "Resources", json_list());
    json_append(all_of(state, NAMESPACES), *made);
    return DONE;
}

static value *resource_of(value *namespace, const char *endpoint) {
    for (value *one = json_member(namespace, "Resources")->first; one != NULL; one = one->next)
        if (same_word(json_word(json_member(one, "Data"), "Id"), endpoint)) return one;
    return NULL;
}

static HRESULT change_namespace(value *state, value *namespace, const value *request) {
    const char *identity = json_word(json_member(request, "Settings"), "EndpointId"), *verb = json_word(request, "RequestType");
    value *endpoint = found(state, ENDPOINTS, identity), *resource = resource_of(namespace, identity);
    if (!same_word(json_word(request, "ResourceType"), "Endpoint")) return UNSUPPORTED;
    if (same_word(verb, "Remove")) {
        if (resource == NULL) return NO_ENDPOINT;
        json_drop(json_member(namespace, "Resources"), resource);
        if (endpoint != NULL) json_remove(endpoint, "HostComputeNamespace");
        return DONE;
    }
    if (!same_word(verb, "Add")) return UNSUPPORTED;
    if (endpoint == NULL) return NO_ENDPOINT;
    if (*json_word(endpoint, "HostComputeNamespace") != 0) return ALREADY_ATTACHED;
    resource = json_object();
    value *data = json_object();
    json_set(data, "Id", json_of(json_word(endpoint, "ID")));
    json_set(resource, "Type", json_of("Endpoint"));
    json_set(resource, "Data", data);
    json_append(json_member(namespace, "Resources"), resource);
    json_set(endpoint, "HostComputeNamespace", json_of(json_word(namespace, "ID")));
    return DONE;
}

HRESULT change(value *state, const char *kind, value *object, const value *request) {
    if (strcmp(kind, NAMESPACES) == 0) return change_namespace(state, object, request);
    const value *settings = json_member(request, "Settings"), *added = json_member(settings, "Policies");
    if (!same_word(json_word(request, "ResourceType"), "Policy") || added == NULL) return UNSUPPORTED;
    HRESULT result = sound_policies(settings);
    if (result != DONE) return result;
    value *policies = json_member(object, "Policies");
    if (policies == NULL || same_word(json_word(request, "RequestType"), "Update")) {
        policies = json_list();
        json_set(object, "Policies", policies);
    } else if (!same_word(json_word(request, "RequestType"), "Add")) {
        return UNSUPPORTED;
    }
    for (const value *one = added->first; one != NULL; one = one->next) json_append(policies, json_copy(one));
    return DONE;
}

HRESULT removed(value *state, const char *kind, const char *identity) {
    value *object = found(state, kind, identity);
    if (object == NULL) return not_found(kind);
    json_drop(all_of(state, kind), object);
    if (strcmp(kind, NETWORKS) == 0) { /* its endpoints go with it */
        for (value *one = all_of(state, ENDPOINTS)->first, *next; one != NULL; one = next) {
            next = one->next;
            if (same_word(json_word(one, "HostComputeNetwork"), identity)) removed(state, ENDPOINTS, json_word(one, "ID"));
        }
    }
    for (value *one = all_of(state, NAMESPACES)->first; strcmp(kind, ENDPOINTS) == 0 && one != NULL; one = one->next)
        if (resource_of(one, identity) != NULL) json_drop(json_member(one, "Resources"), resource_of(one, identity));
    return DONE;
}
