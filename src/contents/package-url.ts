// Package URLs: https://github.com/package-url/purl-spec.

import { decodePercent } from '#lib/net/percent-encoding.ts'
import { goModulePath, goRelease, isGoItself } from '#versions/go-names.ts'
import { projectName } from '#versions/pep503.ts'
import { distributionWithCodename, hasCodenames, releaseNamed } from './codenames.ts'
import {
  type Distribution,
  distributionKinds,
  isOfDistribution,
  type Package,
  type PackageKind,
  packageKinds,
} from './packages.ts'
import { openEulerOf } from './rpm-distributions.ts'
import { archAndModule, sourcePackageOf } from './rpm-module.ts'

type Parsed = {
  type: string
  namespace: string[]
  name: string
  version: string
  qualifiers: URLSearchParams
  subpath: string
}

/** Name and version that a document states in addition to the package URL. */
export type StatedNameAndVersion = { name?: string; version?: string }

/**
 * Result of reading a package URL. `package`: the package. `type`: a type whose versions cannot be compared. `missing`: the
 * missing part of the package URL.
 */
export type PackageUrlRead = { package: Package } | { type: string } | { missing: 'name' | 'version' }

/** Reads the package of a package URL. If the package URL has no version, uses the version in the document. */
export function readPackageUrl(
  url: string,
  { name: named = '', version: versionBesides = '' }: StatedNameAndVersion = {},
): PackageUrlRead {
  const parsed = parse(url)
  if (!parsed || parsed.name === '') return { missing: 'name' }
  const { type, qualifiers } = parsed
  const kind = packageKinds.find((known) => known === type)
  if (!kind) return { type }
  const given = { ...parsed, version: parsed.version || assertedVersion(versionBesides) }
  const name = nameIn(kind, given, named)
  const version = versionIn(kind, name, given)
  if (version === '') return { missing: 'version' }
  if (!isOfDistribution({ kind }))
    return { package: { kind, name, version, origin: name, originVersion: version, arch: '' } }
  const [module, stream] = (kind === 'rpm' ? (qualifiers.get('rpmmod') ?? '') : '').split(':')
  return {
    package: {
      ...{ kind, name, version, ...originIn(qualifiers, name, version), arch: qualifiers.get('arch') ?? '' },
      ...(module && stream ? { module: `${module}:${stream}` } : {}),
    },
  }
}

/** The package of a package URL. Undefined if the kind is not supported, or if there is no version. */
export function packageOf(url: string): Package | undefined {
  const read = readPackageUrl(url)
  return 'package' in read ? read.package : undefined
}

/** Distribution in a package URL. For example, Alpine 3.19 in `pkg:apk/alpine/musl@1?distro=alpine-3.19`. */
export function distributionOf(url: string): Distribution | undefined {
  const { type = '', namespace = [], version: ofPackage = '', qualifiers } = parse(url) ?? {}
  if (!distributionKinds.some((one) => one === type) || namespace.length > 1) return undefined
  const distro = (qualifiers?.get('distro') ?? qualifiers?.get('os_version') ?? '').trim()
  const [, system, number] = type === 'rpm' ? (/^([a-z_-]{1,40})-(\d[\w.-]{0,40})$/.exec(distro) ?? []) : []
  if (system !== undefined && number !== undefined) return { id: system, version: number }
  const id = namespace[0]?.toLowerCase() ?? idIn(distro)
  if (id === '') return undefined
  const rest = distro.toLowerCase().startsWith(`${id}-`) ? distro.slice(id.length + 1) : distro
  const release = releaseNamed(id, rest)
  const built = id === 'openeuler' ? openEulerOf(ofPackage) : undefined
  if (built !== undefined && (rest === '' || built.startsWith(rest))) return { id, version: built }
  // An unknown codename is a release too. Without it, its packages would be compared as those of the image's release.
  const isUnknownName = hasCodenames(id) && /^[a-z][\w.-]*$/i.test(rest) && rest.toLowerCase() !== id
  const isRelease = release !== rest || rest !== distro || isUnknownName || /^v?\d|^edge$/i.test(rest)
  const version = isRelease ? release : ''
  return { id: id.slice(0, 128).toWellFormed(), version: version.slice(0, 128).toWellFormed() }
}

/** Without a namespace, only `distro` names the distribution, such as `debian-12` or `bookworm`. */
const idIn = (distro: string): string =>
  distributionWithCodename(distro) ?? /^([a-z]+)-v?\d/i.exec(distro)?.[1]?.toLowerCase() ?? ''

function parse(url: string): Parsed | undefined {
  const [, type, path = '', query = '', fragment = ''] =
    /^pkg:\/*([A-Za-z0-9.+-]{1,64})\/([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/is.exec(url.trim()) ?? []
  if (type === undefined) return undefined
  const at = path.lastIndexOf('@')
  // A scope of npm begins with the same character. Another part follows a scope, while the version is at the end.
  const isScope = (at === 0 || path[at - 1] === '/') && path.includes('/', at)
  const end = at >= 0 && !isScope ? at : path.length
  const parts = path.slice(0, end).split('/').map(decodePercent)
  // A name with a wrong escape would match no advisory.
  if (parts.some((part) => /%(?![\dA-F]{2})/i.test(part) && path.includes(part))) return undefined
  const qualifiers = new URLSearchParams(query.replaceAll('+', '%2B'))
  return {
    type: type.toLowerCase(),
    namespace: parts.slice(0, -1).filter(Boolean),
    name: parts.at(-1)!,
    version: decodePercent(path.slice(end + 1)).trim(),
    qualifiers: new URLSearchParams(
      [...qualifiers].map(([key, value]): [string, string] => [key.toLowerCase(), value]),
    ),
    subpath: fragment.split('/').filter(Boolean).map(decodePercent).join('/'),
  }
}

/** SPDX writes that it does not say. */
const assertedVersion = (text: string): string => (['NOASSERTION', 'NONE'].includes(text) ? '' : text.trim())

/** Name in the form that the advisories of the ecosystem use. */
function nameIn(kind: PackageKind, { namespace, name, subpath, version }: Parsed, named: string): string {
  if (kind === 'golang') return goModulePath({ path: [...namespace, name].join('/'), subpath, version, named })
  if (kind === 'npm') return [...namespace, name].join('/')
  if (kind === 'maven') return [...namespace, name].join(':')
  return kind === 'pypi' ? projectName(name) : name
}

function versionIn(kind: PackageKind, name: string, { version, qualifiers }: Parsed): string {
  if (kind === 'deb' || kind === 'rpm') return version && withEpoch(version, qualifiers.get('epoch') ?? '')
  return kind === 'golang' && isGoItself(name) ? goRelease(version) : version
}

/** Package URL of a package, with its distribution if that is known. */
export function packageUrl(
  { kind, name, version, arch }: Omit<Package, 'origin' | 'originVersion'>,
  distribution: string,
) {
  const ofDistribution = distributionKinds.some((one) => one === kind)
  const parts = ofDistribution ? (distribution === '' ? [name] : [distribution, name]) : partsOf(kind, name)
  const path = [kind, ...parts].map(encodeURIComponent).join('/')
  const { arch: architecture, module } = archAndModule(arch)
  const [, epoch = '', rest = version] = kind === 'rpm' ? (/^(\d+):(.*)$/.exec(version) ?? []) : []
  const qualifiers = { arch: architecture, epoch, rpmmod: module }
  const query = Object.entries(qualifiers).flatMap(([key, value]) =>
    value === '' ? [] : [`${key}=${encodeURIComponent(value)}`],
  )
  return `pkg:${path}@${encodeURIComponent(rest)}${query.length === 0 ? '' : `?${query.join('&')}`}`
}

function partsOf(kind: PackageKind, name: string): string[] {
  if (kind === 'maven') return name.split(':')
  return kind === 'golang' || kind === 'npm' ? name.split('/') : [name]
}

/**
 * Source package in the qualifiers. `upstream` is its name, followed by its version if that differs. apk builders use `origin`.
 */
function originIn(qualifiers: URLSearchParams, name: string, version: string) {
  const source = sourcePackageOf(qualifiers.get('upstream') ?? qualifiers.get('sourcerpm') ?? '')
  if (source) return { origin: source.name, originVersion: sameEpoch(version, source.version) }
  const [origin = '', originVersion = ''] = (qualifiers.get('upstream') ?? qualifiers.get('origin') ?? '').split('@')
  return { origin: origin || name, originVersion: originVersion || version }
}

/** Version of an rpm source package with the epoch of the binary package, because names of source packages contain no epoch. */
function sameEpoch(version: string, source: string): string {
  const [epoch = ''] = /^\d+:/.exec(version) ?? []
  return `${epoch}${source}`
}

function withEpoch(version: string, epoch: string): string {
  return /^[1-9][0-9]*$/.test(epoch) && !version.includes(':') ? `${epoch}:${version}` : version
}
