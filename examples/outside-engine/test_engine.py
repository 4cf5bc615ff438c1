from engine import Engine  # yours

from reference.models.shipped import folder_of  # or the folder of your weights
from reference.oracle.suite import Answer, EngineSuite, Request


class TestEngine(EngineSuite):
    model = folder_of("tiny-ouro")
    engine = Engine(model)

    def decode(self, request: Request) -> Answer:
        run = self.engine.generate(
            request.prompt_ids, request.max_new_tokens, request.eos_token_ids, request.draft_depth
        )
        return Answer(token_ids=run.ids, finish_reason=run.reason, trace=run.trace, counts=run.counts)
