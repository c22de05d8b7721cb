// Reader of product life cycles in the format of endoflife.date: answers of /api/v1/products/full or of a single product, and
// records from which endoflife.date makes its pages.

import { type Json, listAt, objectAt, textAt, WrongValue } from '../framework/json-values.ts'
import { parseUserJson } from '../framework/user-files.ts'
import type { ImportRecord, Problem } from './import-batches.ts'

/** Reads a file. Returns the valid products, and the problems of the others. */
export function readLifecycles(file: string, text: string): { records: ImportRecord[]; problems: Problem[] } {
  const records: ImportRecord[] = []
  const problems: Problem[] = []
  const read = <T>(at: string, work: () => T): T | undefined => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof WrongValue)) throw error
      const field = [at, error.path].filter((part) => part !== '').join('.')
      problems.push({ file, line: 0, field, description: error.message })
      return undefined
    }
  }
  const products = read('', () => productsIn(text)) ?? []
  for (const [i, one] of products.entries()) {
    const body = read(products.length === 1 ? '' : `[${i}]`, () => productOf(objectAt(one, '')))
    if (body) records.push({ id: body.name, file, body, lineOf: () => 0 })
  }
  return { records, problems }
}

function productsIn(text: string): readonly unknown[] {
  let value: unknown
  try {
    value = parseUserJson(text)
  } catch {
    throw new WrongValue('', 'is not valid JSON')
  }
  const result = Array.isArray(value) ? value : (objectAt(value, '').result ?? value)
  return Array.isArray(result) ? result : [result]
}

function productOf(product: Json) {
  const ofPages = product.name === undefined
  const aliases = optionalList(product[ofPages ? 'alternate_urls' : 'aliases'], ofPages ? 'alternate_urls' : 'aliases')
  return {
    name: textAt(product[ofPages ? 'file' : 'name'], 'name'),
    label: optionalText(product[ofPages ? 'title' : 'label'], ofPages ? 'title' : 'label'),
    aliases: aliases.map((one, i) => textAt(one, `aliases[${i}]`).replace(/^\//, '')),
    purls: optionalList(product.identifiers, 'identifiers').flatMap((one, i) => {
      const { purl, type, id } = objectAt(one, `identifiers[${i}]`)
      const found = purl ?? (type === 'purl' ? id : undefined)
      return found === undefined ? [] : [textAt(found, `identifiers[${i}]`)]
    }),
    releases: listAt(product.releases, 'releases').map((one, i) => {
      const path = `releases[${i}]`
      return ofPages ? pageRelease(objectAt(one, path), path) : apiRelease(objectAt(one, path), path)
    }),
  }
}

function apiRelease(release: Json, path: string) {
  const latest =
    release.latest === undefined || release.latest === null ? {} : objectAt(release.latest, `${path}.latest`)
  return {
    cycle: textAt(release.name, `${path}.name`),
    releaseDate: optionalText(release.releaseDate, `${path}.releaseDate`),
    eolDate: optionalText(release.eolFrom, `${path}.eolFrom`),
    ended: flag(release.isEol, `${path}.isEol`),
    lts: flag(release.isLts, `${path}.isLts`) || optionalText(release.ltsFrom, `${path}.ltsFrom`) !== '',
    ltsDate: optionalText(release.ltsFrom, `${path}.ltsFrom`),
    latest: optionalText(latest.name, `${path}.latest.name`),
    ...more(release, path),
  }
}

function pageRelease(release: Json, path: string) {
  const [eolDate, ended] = dayOrFlag(release.eol, `${path}.eol`)
  const [ltsDate, lts] = dayOrFlag(release.lts, `${path}.lts`)
  return {
    cycle: textAt(release.releaseCycle, `${path}.releaseCycle`),
    releaseDate: optionalText(release.releaseDate, `${path}.releaseDate`),
    eolDate,
    ended,
    lts: lts || ltsDate !== '',
    ltsDate,
    latest: optionalText(release.latest, `${path}.latest`),
    ...more(release, path),
  }
}

/** Properties that endoflife.date does not have. Image builders may add them. */
function more(release: Json, path: string) {
  return { broken: flag(release.broken, `${path}.broken`), fips: flag(release.fips, `${path}.fips`) }
}

function dayOrFlag(value: unknown, path: string): [string, boolean] {
  return typeof value === 'boolean' ? ['', value] : [optionalText(value, path), false]
}

/** Returns empty text for a missing value and for null. */
function optionalText(value: unknown, path: string): string {
  return value === undefined || value === null || value === '' ? '' : textAt(value, path)
}

function optionalList(value: unknown, path: string): readonly unknown[] {
  return value === undefined || value === null ? [] : listAt(value, path)
}

function flag(value: unknown, path: string): boolean {
  if (value === undefined || value === null) return false
  if (typeof value !== 'boolean') throw new WrongValue(path, 'must be true or false')
  return value
}
