// Pictures of people, service accounts and organizations: initials on a color that depends on the name.
import { Icon } from './icon.tsx'

type Props = { name: string; isPerson: boolean; isBot?: boolean }

/** People are round, everything else is square. The name stands beside the picture, so screen readers skip it. */
export function Avatar({ name, isPerson, isBot = false }: Props) {
  const color = isBot ? '' : ` c${(sumOf(name) % colors) + 1}`
  return (
    <span class={`avatar${isPerson ? ' round' : ''}${color}`} aria-hidden="true">
      {isBot ? <Icon name="bot" /> : initialsOf(name, isPerson ? 2 : 1)}
    </span>
  )
}

const colors = 6
const sumOf = (name: string): number => [...name].reduce((sum, letter) => sum + letter.codePointAt(0)!, 0)

/** First letters of the first and the last word of a name. */
export function initialsOf(name: string, count: number): string {
  const words = name.split(/[\s._@-]+/).filter((one) => one !== '')
  const letters = [words[0], ...(words.length > 1 ? [words.at(-1)] : [])].map((one) => [...(one ?? '')][0] ?? '')
  return letters.slice(0, count).join('').toUpperCase()
}

type PersonProps = { name: string; isBot?: boolean }

/** Name of a person or a service account, with its picture. */
export function Person({ name, isBot = false }: PersonProps) {
  return (
    <span class="person">
      <Avatar name={name} isPerson={!isBot} isBot={isBot} />
      <bdi>{name}</bdi>
    </span>
  )
}
