/* The same objects as v1 and as v2 show them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service.h"

/* --- policies: members beside the type in v1, in Settings in v2 --------------------------------------------------- */

static const struct {
    const char *v1, *v2;
} types[] = {{"ROUTE", "SDNRoute"}, {"PA", "ProviderAddress"}}, members[] = {{"ExceptionList", "Exceptions"}, {"PA", "ProviderAddress"}, {"VSID", "IsolationId"}};

static value *policy_of_v1(const value *flat) {
    value *policy = json_object(), *settings = json_object();
    const char *type = json_word(flat, "Type");
    for (size_t at = 0; at < sizeof types / sizeof *types; at++)
        if (same_word(type, types[at].v1)) type = types[at].v2;
    for (const value *member = flat->first; member != NULL; member = member->next) {
        const char *name = member->name;
        for (size_t at = 0; at < sizeof members / sizeof *members; at++)
            if (same_word(name, members[at].v1)) name = members[at].v2;
        if (!same_word(name, "Type")) json_set(settings, name, json_copy(member));
    }
    json_set(policy, "Type", json_of(type));
    json_set(policy, "Settings", settings);
    return policy;
}

static value *policy_v1(const value *policy) {
    value *flat = json_object();
    const char *type = json_word(policy, "Type");
    for (size_t at = 0; at < sizeof types / sizeof *types; at++)
        if (same_word(type, types[at].v2)) type = types[at].v1;
    json_set(flat, "Type", json_of(type));
    const value *settings = json_member(policy, "Settings");
    for (const value *member = settings == NULL ? NULL : settings->first; member != NULL; member = member->next) {
        const char *name = member->name;
        for (size_t at = 0; at < sizeof members / sizeof *members; at++)
            if (same_word(name, members[at].v2)) name = members[at].v1;
        json_set(flat, name, json_copy(member));
    }
    return flat;
}

static void put_policies(value *into, const value *from, value *(*turned)(const value *)) {
    const value *policies = json_member(from, "Policies");
    value *list = json_list();
    for (const value *one = policies == NULL ? NULL : policies->first; one != NULL; one = one->next) json_append(list, turned(one));
    json_set(into, "Policies", list);
}

/* --- networks: Subnets in v1, Ipams in v2 ------------------------------------------------------------------------- */

value *network_of_v1(const value *request) {
    value *network = json_copy(request), *list = json_list(), *ipam = json_object(), *ipams = json_list();
    const value *subnets = json_member(request, "Subnets");
    for (const value *one = subnets == NULL ? NULL : subnets->first; one != NULL; one = one->next) {
        value *subnet = json_object(), *route = json_object(), *routes = json_list();
        json_set(subnet, "IpAddressPrefix", json_of(json_word(one, "AddressPrefix")));
        json_set(route, "NextHop", json_of(json_word(one, "GatewayAddress")));
        json_set(route, "DestinationPrefix", json_of("0.0.0.0/0"));
        json_append(routes, route);
        json_set(subnet, "Routes", routes);
        put_policies(subnet, one, policy_of_v1);
        json_append(list, subnet);
    }
    json_set(ipam, "Type", json_of("Static"));
    json_set(ipam, "Subnets", list);
    json_append(ipams, ipam);
    json_remove(network, "Subnets");
    json_set(network, "Ipams", ipams);
    put_policies(network, request, policy_of_v1);
    return network;
}

value *network_v1(const value *network) {
    value *shown = json_copy(network), *list = json_list();
    const value *ipams = json_member(network, "Ipams"), *subnets = ipams == NULL ? NULL : json_member(ipams->first, "Subnets");
    for (const value *one = subnets == NULL ? NULL : subnets->first; one != NULL; one = one->next) {
        value *subnet = json_object();
        const value *routes = json_member(one, "Routes");
        json_set(subnet, "AddressPrefix", json_of(json_word(one, "IpAddressPrefix")));
        json_set(subnet, "GatewayAddress", json_of(routes == NULL ? "" : json_word(routes->first, "NextHop")));
        put_policies(subnet, one, policy_v1);
        json_append(list, subnet);
    }
    json_remove(shown, "Ipams");
    json_set(shown, "Subnets", list);
    put_policies(shown, network, policy_v1);
    return shown;
}

/* --- endpoints ---------------------------------------------------------------------------------------------------- */

static void move_word(value *object, const char *old, const char *new) {
    if (json_member(object, old) == NULL) return;
    value *copy = json_copy(json_member(object, old));
    json_remove(object, old);
    json_set(object, new, copy);
}

static value *dns_of_v1(const value *request) {
    value *dns = json_object(), *servers = json_list();
    char *all = joined(json_word(request, "DNSServerList"), NULL);
    for (char *one = strtok(all, ","); one != NULL; one = strtok(NULL, ",")) json_append(servers, json_of(one));
    json_set(dns, "Domain", json_of(json_word(request, "DNSSuffix")));
    json_set(dns, "ServerList", servers);
    return dns;
}

value *endpoint_of_v1(const value *request) {
    value *endpoint = json_copy(request), *configurations = json_list(), *configuration = json_object();
    if (*json_word(request, "IPAddress") != 0) {
        const value *length = json_member(request, "PrefixLength");
        json_set(configuration, "IpAddress", json_of(json_word(request, "IPAddress")));
        if (length != NULL) json_set(configuration, "PrefixLength", json_literal(length->text));
        json_append(configurations, configuration);
    }
    json_set(endpoint, "IpConfigurations", configurations);
    if (json_member(request, "DNSSuffix") != NULL || json_member(request, "DNSServerList") != NULL) json_set(endpoint, "Dns", dns_of_v1(request));
    const value *remote = json_member(request, "IsRemoteEndpoint");
    if (remote != NULL && strcmp(remote->text, "true") == 0) json_set(endpoint, "Flags", json_literal("1"));
    const char *old[] = {"IPAddress", "PrefixLength", "DNSSuffix", "DNSServerList", "IsRemoteEndpoint"};
    for (int at = 0; at < 5; at++) json_remove(endpoint, old[at]);
    move_word(endpoint, "VirtualNetwork", "HostComputeNetwork");
    put_policies(endpoint, request, policy_of_v1);
    return endpoint;
}

static void show_dns(value *shown, const value *dns) {
    const value *servers = json_member(dns, "ServerList");
    char *all = "";
    for (const value *one = servers == NULL ? NULL : servers->first; one != NULL; one = one->next)
        all = joined(all, *all == 0 ? "" : ",", one->text, NULL);
    json_set(shown, "DNSSuffix", json_of(json_word(dns, "Domain")));
    json_set(shown, "DNSServerList", json_of(all));
}

value *endpoint_v1(const value *state, const value *endpoint) {
    value *shown = json_copy(endpoint);
    const value *configurations = json_member(endpoint, "IpConfigurations"), *first = configurations == NULL ? NULL : configurations->first;
    const value *flags = json_member(endpoint, "Flags"), *network = found((value *)state, NETWORKS, json_word(endpoint, "HostComputeNetwork"));
    if (first != NULL) {
        json_set(shown, "IPAddress", json_of(json_word(first, "IpAddress")));
        json_set(shown, "PrefixLength", json_literal(json_member(first, "PrefixLength") == NULL ? "0" : json_member(first, "PrefixLength")->text));
    }
    if (json_member(endpoint, "Dns") != NULL) show_dns(shown, json_member(endpoint, "Dns"));
    if (flags != NULL && strcmp(flags->text, "1") == 0) json_set(shown, "IsRemoteEndpoint", json_literal("true"));
    json_set(shown, "VirtualNetworkName", json_of(json_word(network, "Name")));
    const char *old[] = {"IpConfigurations", "Dns", "Flags"};
    for (int at = 0; at < 3; at++) json_remove(shown, old[at]);
    move_word(shown, "HostComputeNetwork", "VirtualNetwork");
    put_policies(shown, endpoint, policy_v1);
    return shown;
}
