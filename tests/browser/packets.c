/* tests/browser/packets.c: says what leaves by a network interface, one line a packet, as soon as it is sent:
 *   udp 192.0.2.1:38760 > 198.51.100.9:53 71 bytes: .firefox.settings.
 * The words after the length are what is readable in it: a name that is asked for, a host that is greeted.
 * Linux only, as root; for tests/browser/netns.sh, which counts packets and needs to know whose they are.
 * Usage: packets INTERFACE
 */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>

#define ETHERNET 14u
enum { IPV4 = 0x0800, IPV6 = 0x86dd, TCP = 6, UDP = 17, EVERYTHING = 0x0003 };

static unsigned big_endian_16(const unsigned char *p) { return (unsigned)p[0] << 8 | p[1]; }

static void address(int family, const unsigned char *ip, const unsigned char *port) {
  char text[INET6_ADDRSTRLEN];
  inet_ntop(family, ip, text, sizeof text);
  printf(family == AF_INET6 ? "[%s]" : "%s", text);
  if (port != NULL) printf(":%u", big_endian_16(port));
}

static void readable(const unsigned char *p, size_t n) {
  unsigned shown = 0;
  for (size_t i = 0; i < n && shown < 80; i++) {
    if (p[i] < 33 || p[i] > 126) continue;
    if (i > 0 && (p[i - 1] < 33 || p[i - 1] > 126)) putchar('.');
    putchar(p[i]);
    shown++;
  }
}

static void packet(const unsigned char *p, size_t n) {
  const unsigned type = n < ETHERNET ? 0 : big_endian_16(p + 12);
  const int family = type == IPV6 ? AF_INET6 : AF_INET;
  const size_t from = ETHERNET + (type == IPV6 ? 8 : 12), width = type == IPV6 ? 16 : 4;
  if ((type != IPV4 && type != IPV6) || n < from + 2 * width) {
    printf("ethernet type %04x, %zu bytes\n", type, n);
    return;
  }
  const unsigned protocol = p[ETHERNET + (type == IPV6 ? 6 : 9)];
  const size_t body = type == IPV6 ? ETHERNET + 40 : ETHERNET + 4u * (p[ETHERNET] & 15u);
  const int has_ports = (protocol == TCP || protocol == UDP) && n >= body + 8;
  if (has_ports) printf("%s ", protocol == TCP ? "tcp" : "udp");
  else printf("protocol %u ", protocol);
  address(family, p + from, has_ports ? p + body : NULL);
  printf(" > ");
  address(family, p + from + width, has_ports ? p + body + 2 : NULL);
  printf(" %zu bytes: ", n);
  if (n > body) readable(p + body, n - body);
  putchar('\n');
}

int main(int argc, char **argv) {
  static unsigned char bytes[65536];
  struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(EVERYTHING)};
  at.sll_ifindex = argc == 2 ? (int)if_nametoindex(argv[1]) : 0;
  const int all = socket(AF_PACKET, SOCK_RAW, htons(EVERYTHING));
  if (at.sll_ifindex == 0 || all < 0 || bind(all, (const struct sockaddr *)&at, sizeof at) != 0) {
    fprintf(stderr, "packets: cannot listen; usage: packets INTERFACE, as root\n");
    return 1;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (;;) {
    socklen_t size = sizeof at;
    const ssize_t n = recvfrom(all, bytes, sizeof bytes, 0, (struct sockaddr *)&at, &size);
    if (n < 0) return 1;
    if (at.sll_pkttype == PACKET_OUTGOING) packet(bytes, (size_t)n);
  }
}
