// Settings of vulnerability and end-of-life data (docs/reference/vulnerabilities.md).

import { ConfigError, onOff, setting, whole } from './basics.ts'
import { annotationNames, destinations, osvEcosystems } from './values.ts'

const sourceNames = (value: string, name: string): readonly string[] => {
  const listed = value.split(',').flatMap((one) => (one.trim() === '' ? [] : [one.trim()]))
  if (
    listed.every((one) =>
      /^(?:osv\/[A-Za-z][\w .:()-]{0,63}|secdb\/[a-z0-9.]+\/[a-z]+|debian-tracker|kev|epss)$/.test(one),
    )
  )
    return listed
  throw new ConfigError(
    `${name} must be osv/ECOSYSTEM, secdb/BRANCH/REPOSITORY, debian-tracker, kev or epss, with commas`,
  )
}
const mirrorUrl = (value: string, name: string): string => {
  const url = URL.parse(value)
  if (value === '' || (url && /^https?:$/.test(url.protocol) && url.username === '' && url.password === ''))
    return value
  throw new ConfigError(`${name} must be an http or https URL without a user and password`)
}

export const vulnerabilitySettings = {
  vulnerabilitySources: setting({
    env: 'PINFOLD_VULNERABILITY_SOURCES',
    parse: sourceNames,
    default: 'osv/PyPI,osv/npm,osv/Go,osv/Maven,osv/RubyGems,osv/crates.io,osv/Alpine,osv/Debian',
    doc: 'What `pinfold vulnerabilities sync` reads, with commas; `kev` and `epss` are worth adding; see [vulnerabilities](reference/vulnerabilities.md).',
  }),
  vulnerabilityMirror: setting({
    env: 'PINFOLD_VULNERABILITY_MIRROR',
    parse: mirrorUrl,
    default: '',
    doc: 'Where copies of the sources are, with `osv/`, `secdb/`, `debian-tracker`, `kev.json` and `epss.csv.gz` below. Default: at their own addresses.',
  }),
  vulnerabilitySyncHours: setting({
    env: 'PINFOLD_VULNERABILITY_SYNC_HOURS',
    parse: whole(0, 720),
    default: '0',
    doc: 'After how many hours the server reads each of these sources again by itself. Default: it reads none, and `pinfold vulnerabilities sync` does.',
  }),
  vulnerabilityPrivate: setting({
    env: 'PINFOLD_VULNERABILITY_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'Host names, addresses and CIDR ranges, with commas, where the server may read sources although the address is private; a mirror has to be among them. The command may ask any mirror that it is given.',
  }),
  scannersPrivate: setting({
    env: 'PINFOLD_SCANNERS_PRIVATE',
    parse: destinations,
    default: '',
    doc: 'Host names, addresses and CIDR ranges, with commas, where [scanners](reference/vulnerabilities.md#scanner-adapters) may be asked although the address is private.',
  }),
  allowInsecureScanners: setting({
    env: 'PINFOLD_ALLOW_INSECURE_SCANNERS',
    parse: onOff,
    default: 'off',
    doc: '`on` lets scanners be asked over `http://`. Whoever sees that traffic can pull what is being scanned, and whoever alters it says what is found.',
  }),
  mainPackageKeys: setting({
    env: 'PINFOLD_MAIN_PACKAGE_KEYS',
    parse: annotationNames,
    default: '',
    doc: 'Further annotations and labels that name the package which an image is about, with commas; see [lifecycles](reference/end-of-life.md).',
  }),
  vulnerabilityMaxAgeDays: setting({
    env: 'PINFOLD_VULNERABILITY_MAX_AGE_DAYS',
    parse: whole(1, 3650),
    default: '7',
    doc: 'After how many days without being read to its end a source of vulnerabilities counts as stale. Of an image that it speaks of, nobody is told then that nothing is wrong with it.',
  }),
  findingsPerList: setting({
    env: 'PINFOLD_VULNERABILITY_FINDINGS_PER_IMAGE',
    parse: whole(1000, 10_000_000),
    default: '50000',
    doc: 'How many findings are kept of the packages of one image. An image in which more is found says that not all of it is known. Whoever may push could fill the database otherwise.',
  }),
  goneContents: setting({
    env: 'PINFOLD_VULNERABILITY_GONE_IMAGES',
    parse: whole(1, 100_000_000),
    default: '100000',
    doc: 'Of how many images that are gone an organisation keeps what they contained, for reports of past days; the newest are kept. Whoever may push and delete could fill the database otherwise.',
  }),
  advisoryEcosystems: setting({
    env: 'PINFOLD_ADVISORY_ECOSYSTEMS',
    parse: osvEcosystems,
    default: '',
    doc: 'The distributions that the advisories of the public organisation are about, as OSV names them, with commas: `Wolfi`, `Alpine:v3.19`, `Debian` for all of its releases. Only packages of these are compared with them. Default: none.',
  }),
}
