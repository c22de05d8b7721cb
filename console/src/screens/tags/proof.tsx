// Proof that a tag had a digest at a time. Users can download it as a file, and verify it offline with the keys that are shown.
import { me } from '../../app/session.ts'
import { askText } from '../../data/api.ts'
import { SaveButton } from '../../ui/save.tsx'
import { Code } from '../../ui/text.tsx'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'

type Props = { names: readonly string[]; repo: string; tag: string; at: string }
/** `isOpen` is true if the tag still has the digest. */
type Proved = Props & { digest: string; isOpen: boolean }

const orgOf = (repo: string): string => repo.split('/')[0]!
const fileOf = (names: readonly string[], tag: string): string => `${names.at(-1)}-${tag}.tlog-proof`

/** Downloads the proof of the digest at a time. */
export function SaveProof({ names, repo, tag, at }: Props) {
  const path = `/ledger/${orgOf(repo)}/repos/${repo}/tags/${encodeURIComponent(tag)}/proof`
  return (
    <SaveButton
      label={tagWords.saveProofOf(tag, at)}
      file={fileOf(names, tag)}
      read={() => askText(path, { query: { at } })}
    >
      {tagWords.saveProof}
    </SaveButton>
  )
}

export function Proof({ names, repo, tag, digest, at, isOpen }: Proved) {
  const image = `${names.join('/')}:${tag}`
  const policy = `${names[0]}.policy`
  const check = `pinfold tags verify ${me.host}/${image}@${digest} --at ${at} --proof ${fileOf(names, tag)} --policy ${policy}${isOpen ? ' --open' : ''}`
  return (
    <details>
      <summary>{tagWords.proof}</summary>
      <p>{tagWords.proofText}</p>
      <p>
        <SaveProof names={names} repo={repo} tag={tag} at={at} />{' '}
        <SaveButton file={policy} read={() => askText(`/ledger/${orgOf(repo)}/policy`)}>
          {tagWords.savePolicy}
        </SaveButton>
      </p>
      <p class="dim">{tagWords.policyText}</p>
      <p>{tagWords.proofCheck}</p>
      <Code text={check} label={words.copyCommand} />
      <p>{tagWords.proofByCommand}</p>
      <Code text={`pinfold tags proof ${image} --at ${at}`} label={words.copyCommand} />
    </details>
  )
}
