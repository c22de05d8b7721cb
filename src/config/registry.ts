// Settings of the registry, its transparency logs, and vulnerability data (docs/reference/vulnerabilities.md).

import { ConfigError, oneOf, onOff, setting, whole } from './basics.ts'
import { annotationNames, logKeys, organization, osvEcosystems, urlWithoutUser, witnesses } from './values.ts'

export const registrySettings = {
  publicOrg: setting({
    env: 'PINFOLD_PUBLIC_ORG',
    parse: organization,
    default: 'public',
    doc: 'Name of the organization whose images everyone can pull without a token.',
  }),
  sparseManifests: setting({
    env: 'PINFOLD_SPARSE_MANIFESTS',
    formerly: 'PINFOLD_SPARSE',
    parse: oneOf('off', 'indexes', 'all'),
    default: 'off',
    doc: 'Manifests that can be pushed while content that they list is missing: none (`off`), `indexes` or `all`.',
  }),
  ociTagHistory606: setting({
    env: 'PINFOLD_OCI_TAG_HISTORY_606',
    parse: onOff,
    default: 'on',
    doc: '`on` serves `/v2/<name>/_oci/tag-history/<tag>`, a draft in pull request 606 of the OCI distribution specification.',
  }),
  mainPackageKeys: setting({
    env: 'PINFOLD_MAIN_PACKAGE_KEYS',
    parse: annotationNames,
    default: '',
    doc: 'Additional annotations and labels, separated by commas, that name the main package of an image.',
    note: 'See [end of life](reference/end-of-life.md).',
  }),
}

export const transparencyLogSettings = {
  transparencyLog: setting({
    env: 'PINFOLD_TRANSPARENCY_LOG',
    formerly: 'PINFOLD_LEDGER_PROOFS',
    parse: oneOf('members', 'public', 'off'),
    default: 'members',
    doc: 'Access to [transparency logs](reference/ledger-proofs.md): `members` who can list the tags of the organization, everyone (`public`), or nobody (`off`).',
    note: 'With `off` nothing is signed. Tag updates during that time are added to the log after you turn it on again.',
  }),
  transparencyLogWitnesses: setting({
    env: 'PINFOLD_TRANSPARENCY_LOG_WITNESSES',
    formerly: 'PINFOLD_LEDGER_WITNESSES',
    parse: witnesses,
    default: '',
    doc: '[Witnesses](reference/ledger-proofs.md#witnesses) that the server asks once a minute to sign its checkpoints: `KEY URL` of each, separated by commas.',
    note: 'List private addresses in `PINFOLD_WITNESSES_PRIVATE`. URLs with `http://` need `PINFOLD_ALLOW_INSECURE_UPSTREAMS=on`.',
  }),
  witnessLogs: setting({
    env: 'PINFOLD_WITNESS_LOGS',
    parse: logKeys,
    default: '',
    doc: 'Public keys of the logs of other servers, separated by commas, for which this server is a [witness](reference/ledger-proofs.md#witnesses).',
    note: 'The other servers send their checkpoints to `/ledger/witness/add-checkpoint`.',
  }),
}

const sourceNames = (value: string, name: string): readonly string[] => {
  const listed = value.split(',').flatMap((one) => (one.trim() === '' ? [] : [one.trim()]))
  if (
    listed.every((one) =>
      /^(?:auto|osv\/[A-Za-z][\w .:()-]{0,63}|secdb\/[a-z0-9.]+\/[a-z]+|debian-tracker|kev|epss)$/.test(one),
    )
  )
    return listed
  throw new ConfigError(
    `${name} must be data sources, separated by commas: auto, osv/ECOSYSTEM, secdb/BRANCH/REPOSITORY, debian-tracker, kev or epss`,
  )
}
export const vulnerabilitySettings = {
  vulnerabilitySources: setting({
    env: 'PINFOLD_VULNERABILITY_SOURCES',
    parse: sourceNames,
    default: 'auto',
    doc: 'Data sources that the server and `pinfold vulnerabilities sync` read, separated by commas.',
    note: '`auto` stands for the OSV databases of the ecosystems that stored images have packages of, `kev` and `epss`. See [vulnerabilities](reference/vulnerabilities.md#data-sources).',
  }),
  vulnerabilityMirror: setting({
    env: 'PINFOLD_VULNERABILITY_MIRROR',
    parse: urlWithoutUser,
    default: '',
    defaultMeans: 'none, so each source is read from its own address',
    doc: 'URL of a mirror with copies of the data sources.',
    note: 'The copies are `osv/`, `secdb/`, `debian-tracker`, `kev.json` and `epss.csv.gz` below this URL.',
  }),
  vulnerabilitySyncHours: setting({
    env: 'PINFOLD_VULNERABILITY_SYNC_HOURS',
    parse: whole(0, 720),
    default: '24',
    doc: 'Hours after which the server reads each data source again. `0` turns this off; then only `pinfold vulnerabilities sync` reads data.',
    note: 'With `--demo`, the default is `0`.',
  }),
  vulnerabilityMaxRecords: setting({
    env: 'PINFOLD_VULNERABILITY_MAX_RECORDS',
    parse: whole(1000, 100_000_000),
    default: '1000000',
    doc: 'Number of records of vulnerability data that the server stores by itself.',
    note: 'Above it, no new records are added, and the data source has an error. The limit keeps data sources from filling the disk.',
  }),
  vulnerabilityMaxAgeDays: setting({
    env: 'PINFOLD_VULNERABILITY_MAX_AGE_DAYS',
    parse: whole(1, 3650),
    default: '7',
    doc: 'Days after which a data source that was not read completely again counts as stale.',
    note: 'An image whose packages need a stale source is not reported as free of vulnerabilities.',
  }),
  vulnerabilityFindingsPerImage: setting({
    env: 'PINFOLD_VULNERABILITY_FINDINGS_PER_IMAGE',
    parse: whole(1000, 10_000_000),
    default: '50000',
    doc: 'Number of findings that are stored for the packages of one image.',
    note: 'An image with more findings is reported as incomplete. The limit keeps users who push from filling the database.',
  }),
  vulnerabilityDeletedImages: setting({
    env: 'PINFOLD_VULNERABILITY_DELETED_IMAGES',
    formerly: 'PINFOLD_VULNERABILITY_GONE_IMAGES',
    parse: whole(1, 100_000_000),
    default: '100000',
    doc: 'Number of deleted images in an organization whose package lists are kept for reports of past days.',
    note: 'The most recently deleted images are kept. The limit keeps users who push and delete from filling the database.',
  }),
  advisoryEcosystems: setting({
    env: 'PINFOLD_ADVISORY_ECOSYSTEMS',
    parse: osvEcosystems,
    default: '',
    doc: 'Distributions that the advisories of the public organization apply to, by OSV name, separated by commas.',
    note: 'Examples: `Wolfi`, `Alpine:v3.19`, and `Debian` for all of its releases. Only packages of these distributions are compared with the advisories.',
  }),
}
