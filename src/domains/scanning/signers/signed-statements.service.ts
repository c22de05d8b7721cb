// Keeps what signers who are trusted say of images. What says that there is nothing to do hides that until the same signer says
// otherwise. It goes by when documents were written, which is signed: to push an old one again changes nothing.
import { type PackagePattern, patternOf, patternText } from '#contents/package-pattern.ts'
import { aboutImage } from '#contents/reports/vex-about.ts'
import type { Reader, Tx } from '#db/sql.ts'
import { rootOf } from '#lib/uid.ts'
import { canonicalName } from '../known/names.service.ts'
import type { StatedVulnerability } from '../outside/scan-reports.model.ts'
import * as store from './signed-statements.store.ts'
import { mostSigned, type SignedStatement } from './signers.model.ts'

/** A document as far as it is read: its number, who wrote it by its own word, and when. */
export type SignedDocument = {
  id: number
  author: string
  saidTime: string
  statements: readonly StatedVulnerability[]
}

/** What a document says of an image, which it may name by other digests too; each package apart. */
export async function signedIn(
  reader: Reader,
  { repoUid, digests }: { repoUid: string; digests: readonly string[] },
  { id, author, saidTime, statements }: SignedDocument,
): Promise<SignedStatement[]> {
  const names = new Map<string, string>()
  const all: SignedStatement[] = []
  for (const [i, one] of statements.entries()) {
    const named = names.get(one.vulnerability) ?? (await canonicalName(reader, one.vulnerability, [rootOf(repoUid)]))
    names.set(one.vulnerability, named)
    const said = [one.status, one.justification, one.text].filter(Boolean).join(', ')
    const about = { vulnerability: named, status: one.status, statement: `${id}.${i + 1}`, saidTime }
    const stated = `${author || 'somebody'}: ${said}`.slice(0, 1000)
    for (const text of packagesOf(one, digests)) all.push({ ...about, stated, package: text })
  }
  return all
}

/** Empty for all of the image. What is no package hides nothing; that it is affected is taken for all. */
function packagesOf(one: StatedVulnerability, digests: readonly string[]): string[] {
  const { image, parts } = aboutImage(one, ...digests)
  if (image) return ['']
  const patterns = parts.map((part) => patternOf(part))
  const texts = patterns.flatMap((pattern) => (pattern ? [patternText(pattern)] : []))
  return [...new Set(!hides(one) && patterns.includes(undefined) ? ['', ...texts] : texts)]
}

const hides = ({ status }: Pick<SignedStatement, 'status'>): boolean => status === 'not_affected' || status === 'fixed'

/** Brings what a signer says of an image to what one more document says. `false` where not all that it hides had room. */
export async function takeSigned(
  tx: Tx,
  image: store.ImageIn,
  signer: string,
  signed: readonly SignedStatement[],
  now: string,
): Promise<boolean> {
  let room = mostSigned - (await store.countSigned(tx, image, mostSigned))
  let hadRoom = true
  const names = [...new Set(signed.map(({ vulnerability }) => vulnerability))]
  const current = Map.groupBy(await store.saidNow(tx, image, signer, names), ({ vulnerability }) => vulnerability)
  // What says that there is something to do comes first: in one document it wins.
  for (const one of [...signed.filter((each) => !hides(each)), ...signed.filter(hides)]) {
    const before = current.get(one.vulnerability) ?? []
    const same = before.find((other) => other.package === one.package)
    if (same && isLater(same, one)) continue
    if (hides(one) && before.some((other) => !hides(other) && other.saidTime >= one.saidTime && overlap(other, one))) {
      continue
    }
    if (same && same.status === one.status && same.stated === one.stated) {
      if (same.saidTime !== one.saidTime) await store.noteSaid(tx, same.id, one.saidTime)
      same.saidTime = one.saidTime
      continue
    }
    const ended = before.filter((other) => {
      return other === same || (!hides(one) && hides(other) && other.saidTime <= one.saidTime && overlap(other, one))
    })
    for (const { id } of ended) await store.endSigned(tx, id, now)
    const left = before.filter((other) => !ended.includes(other))
    if (room > 0) {
      room--
      left.push({ ...one, id: await store.insertSigned(tx, image, signer, one, now) })
    } else hadRoom &&= !hides(one)
    current.set(one.vulnerability, left)
  }
  return hadRoom
}

/** Of the same time, what says that there is something to do stays. */
const isLater = (before: SignedStatement, one: SignedStatement): boolean =>
  before.saidTime > one.saidTime || (before.saidTime === one.saidTime && hides(one) && !hides(before))

/** Whether two statements may be about the same package. */
function overlap(one: SignedStatement, other: SignedStatement): boolean {
  if (one.package === '' || other.package === '' || one.package === other.package) return true
  const [a, b] = [patternOf(one.package), patternOf(other.package)]
  return a === undefined || b === undefined || mayBeSame(a, b)
}

function mayBeSame(a: PackagePattern, b: PackagePattern): boolean {
  const fits = (one: string, other: string) => one === '' || other === '' || one === other
  return a.kind === b.kind && a.name === b.name && fits(a.version, b.version) && fits(a.distribution, b.distribution)
}
