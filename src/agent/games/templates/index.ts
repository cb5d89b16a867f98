// The templates that come with Gamekeeper. As modules and not as files beside them, so that the package has them too.
import type { Template } from '../../../contract/games/template-format.ts'
import { counterStrike2, factorio, palworld, rust, terraria, valheim } from './commercial.ts'
import { flyingSquid } from './flying-squid.ts'
import { minecraftBedrock, minecraftJava, paper } from './minecraft.ts'
import { generic, luanti, openttd } from './open-source.ts'

export const SHIPPED_TEMPLATES: readonly Template[] = [
  ...[minecraftJava, flyingSquid, luanti, openttd, generic],
  ...[paper, minecraftBedrock, factorio, valheim, terraria, rust, palworld, counterStrike2],
]
