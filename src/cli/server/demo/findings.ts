// Vulnerability records of the demo. The ids, packages and fixed versions are real facts about Alpine packages. The summaries and
// the selection were made for the demo, so each record has `EXAMPLE-` in its id, and the data source is named `demo`.

const vectors = {
  critical: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H',
  high: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H',
  medium: 'CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:U/C:N/I:N/A:H',
  local: 'CVSS:3.1/AV:L/AC:L/PR:N/UI:R/S:U/C:N/I:N/A:H',
  low: 'CVSS:3.1/AV:L/AC:H/PR:L/UI:N/S:U/C:L/I:N/A:N',
} as const
const scores = { critical: 9.8, high: 7.5, medium: 6.5, local: 5.5, low: 2.5 } as const

type Known = readonly [id: string, name: string, fixed: string, severity: keyof typeof vectors, summary: string]

const known: readonly Known[] = [
  [
    'CVE-2024-3094',
    'xz',
    '5.6.1-r2',
    'critical',
    'Releases of xz contain malicious code that changes the OpenSSH server',
  ],
  ['CVE-2024-45490', 'expat', '2.6.3-r0', 'critical', 'libexpat accepts a negative length'],
  ['CVE-2024-45491', 'expat', '2.6.3-r0', 'critical', 'An integer overflow in libexpat affects 32-bit platforms'],
  ['CVE-2024-45492', 'expat', '2.6.3-r0', 'critical', 'An integer overflow in the group size of libexpat'],
  ['CVE-2024-37371', 'krb5', '1.20.2-r1', 'critical', 'Kerberos reads invalid memory in message tokens'],
  ['CVE-2023-44487', 'nghttp2', '1.57.0-r0', 'high', 'HTTP/2 streams that are canceled at once exhaust a server'],
  [
    'CVE-2024-6119',
    'openssl',
    '3.3.2-r0',
    'high',
    'OpenSSL reads an invalid address when it checks the name of a certificate',
  ],
  ['CVE-2024-4741', 'openssl', '3.3.0-r3', 'high', 'OpenSSL uses memory after it was freed in SSL_free_buffers'],
  ['CVE-2024-56171', 'libxml2', '2.12.10-r0', 'high', 'libxml2 uses memory after it was freed when it checks a schema'],
  ['CVE-2025-26519', 'musl', '1.2.5-r1', 'high', 'iconv of musl writes past the end of its output for EUC-KR'],
  ['CVE-2024-7592', 'python3', '3.12.6-r0', 'high', 'Cookies with backslashes take quadratic time in Python'],
  ['CVE-2024-8926', 'php83', '8.3.12-r0', 'high', 'PHP CGI accepts parameters that change its configuration'],
  ['CVE-2024-8927', 'php83', '8.3.12-r0', 'high', 'PHP CGI can be called past its redirect check'],
  ['CVE-2024-34156', 'go', '1.22.7-r0', 'high', 'Deeply nested structures exhaust the stack of the gob decoder'],
  [
    'CVE-2024-50349',
    'git',
    '2.45.3-r0',
    'medium',
    'git shows control characters of a host name in its password prompt',
  ],
  ['CVE-2024-7264', 'curl', '8.9.1-r0', 'medium', 'curl reads past the end of an ASN.1 time'],
  ['CVE-2024-7347', 'nginx', '1.26.2-r0', 'medium', 'A crafted MP4 file makes nginx read invalid memory'],
  [
    'CVE-2024-22020',
    'nodejs',
    '20.15.1-r0',
    'medium',
    'Node.js imports modules from data URLs past its network policy',
  ],
  ['CVE-2024-21235', 'openjdk21', '21.0.5_p11-r0', 'medium', 'Hotspot of OpenJDK allows changes of accessible data'],
  ['CVE-2023-42364', 'busybox', '1.36.1-r29', 'local', 'awk of BusyBox uses memory after it was freed'],
  ['CVE-2023-42365', 'busybox', '1.36.1-r29', 'local', 'awk of BusyBox uses memory after it was freed in copyvar'],
  ['CVE-2024-39908', 'ruby', '3.3.5-r0', 'medium', 'REXML takes long to parse XML with many special characters'],
  ['CVE-2024-21145', 'openjdk21', '21.0.5_p11-r0', 'low', '2D of OpenJDK shows a subset of accessible data'],
]

/** Data source of the demo, in the form of `vulnerabilitySources:begin`. */
export const demoSource = {
  name: 'demo',
  url: 'https://example.com/demo-records-not-for-production',
  licence: 'unknown',
  ecosystems: ['Alpine:v3.20'],
}

/** Records in the form of `vulnerabilitySources:put`. */
export const demoRecords = known.map(([id, name, fixed, severity, summary]) => ({
  id: `EXAMPLE-${id}`,
  aliases: [id],
  summary: `${summary} (demo record)`,
  references: [`https://nvd.nist.gov/vuln/detail/${id}`],
  severities: [{ type: 'CVSS_V3', vector: vectors[severity], score: scores[severity] }],
  affected: [
    {
      ecosystem: 'Alpine:v3.20',
      name,
      state: 'affected',
      ranges: [{ type: 'ECOSYSTEM', events: [{ introduced: '0' }, { fixed }] }],
    },
  ],
}))

/** Exploitation data in the form of `vulnerabilitySources:putRanks`. The likelihoods are examples. */
export const demoRanks = [
  {
    cve: 'CVE-2023-44487',
    exploited: { addDate: '2023-10-10', dueDate: '2023-10-31', ransomware: false },
    likelihood: { epss: 0.94, percentile: 0.99 },
  },
  { cve: 'CVE-2024-3094', likelihood: { epss: 0.85, percentile: 0.99 } },
  { cve: 'CVE-2024-45490', likelihood: { epss: 0.02, percentile: 0.81 } },
  { cve: 'CVE-2024-6119', likelihood: { epss: 0.01, percentile: 0.74 } },
  { cve: 'CVE-2024-8926', likelihood: { epss: 0.03, percentile: 0.86 } },
]
