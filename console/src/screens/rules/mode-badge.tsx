// Mode of a policy: a badge with its name, and the effect after it.
import { Badge } from '../../ui/text.tsx'

type Props = { kind: Parameters<typeof Badge>[0]['kind']; text: string }

/** A text with an effect has the form `name: effect`. */
export function ModeBadge({ kind, text }: Props) {
  const [name = '', effect] = text.split(': ')
  return (
    <>
      <Badge kind={kind}>{name}</Badge>
      {effect !== undefined && <span class="hint"> {effect}</span>}
    </>
  )
}
