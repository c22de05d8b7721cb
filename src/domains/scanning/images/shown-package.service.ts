import { packageUrl } from '#contents/package-url.ts'
import type { PackageKind } from '#contents/packages.ts'
import { archAndModule } from '#contents/rpm-module.ts'
import type { ListedComponent } from './images.store.ts'

/** A package as callers see it. */
export type ShownPackage = {
  purl: string
  kind: string
  name: string
  version: string
  ecosystem: string
  origin: string
  originVersion: string
  architecture: string
  locations: string[]
}

export function toPackage(one: ListedComponent, distribution: string): ShownPackage {
  const { kind, name, version, ecosystem, origin, originVersion, locations } = one
  const { arch } = archAndModule(one.arch)
  const purl = packageUrl({ ...one, kind: kind as PackageKind }, distribution)
  return { purl, kind, name, version, ecosystem, origin, originVersion, architecture: arch, locations }
}
