//! The words by which a sentence shows what it is: verbs, kinds, connectors.

use std::sync::LazyLock;

use super::foreign;
use super::phrases::{Marked, Spelt, Words, after_any, after_word, list, spelt_words, strip_prefix_ci, words};
use super::text::{any_byte, any_pair, find, find_early, holds, is_cjk};
use crate::plan::NodeKind;

/// Verbs of finding and fetching.
const RETRIEVAL: u32 = 1 << 0;
/// Verbs of looking into something.
const ANALYSIS: u32 = 1 << 1;
/// Verbs of changing the form of code.
const REFACTOR: u32 = 1 << 2;
/// Verbs of writing code.
const CODE: u32 = 1 << 3;
/// Verbs of running something.
const TOOL: u32 = 1 << 4;
/// Verbs of asking.
const ASK: u32 = 1 << 5;
/// Words that stand for testing.
const TEST: u32 = 1 << 6;
/// Further verbs that begin an instruction and whose kind is `Processing`.
const PLAIN: u32 = 1 << 7;
/// Verbs whose object can be tests.
const TEST_MAKERS: u32 = 1 << 8;
/// Things made of code.
const CODE_OBJECTS: u32 = 1 << 9;
/// Things that a build makes.
const ARTEFACTS: u32 = 1 << 10;
/// Words that end the object of a verb.
const PREPOSITIONS: u32 = 1 << 11;
/// A word after which the word before it was the subject: "Release is on Friday".
const FINITE: u32 = 1 << 12;
/// Names of tests.
const TESTS: u32 = 1 << 13;
/// After "test", names of tests.
const SUITES: u32 = 1 << 14;
/// Texts that are written about code.
const WRITINGS: u32 = 1 << 15;
/// Words that begin an instruction.
const VERBS: u32 = RETRIEVAL | ANALYSIS | REFACTOR | CODE | TOOL | ASK | TEST | PLAIN;
/// Every word that shows what a sentence is, with what it can be.
static WORDS: LazyLock<Marked> = LazyLock::new(|| {
    Marked::new(&[
        (
            RETRIEVAL,
            "find|search|fetch|download|read|get|grep|retrieve|obtain|gather|collect|lookup|locate|query|scrape|crawl|\
     browse|pull|discover",
        ),
        (
            ANALYSIS,
            "analyse|analyze|review|compare|investigate|inspect|evaluate|assess|audit|examine|study|diagnose|profile|\
     research|explore|verify|check|validate|understand|identify|determine|measure|benchmark|estimate|triage|\
     debug|analysis|investigation",
        ),
        (
            REFACTOR,
            "refactor|rename|extract|simplify|restructure|reorganise|reorganize|deduplicate|inline|modularise|\
     modularize|decouple|refactoring",
        ),
        (
            CODE,
            "implement|add|create|code|fix|build|develop|wire|integrate|scaffold|bootstrap|patch|program|hook|introduce|\
     port|expose|handle|support|implementing|adding|fixing|creating|setup|initialise|initialize|init",
        ),
        (
            TOOL,
            "run|execute|deploy|install|email|e-mail|mail|send|publish|release|push|restart|launch|ship|notify|upload|\
     submit|commit|merge|invoke|call|trigger|rerun|start|stop|roll|rollback|announce|post|tag|schedule",
        ),
        (ASK, "ask|clarify"),
        (TEST, "test|tests|unit-test|unittest|retest|testing"),
        (
            PLAIN,
            "write|update|configure|document|design|compute|calculate|convert|translate|generate|make|remove|delete|move|\
     copy|draft|prepare|plan|define|describe|decide|choose|pick|open|close|set|change|replace|migrate|upgrade|\
     bump|enable|disable|list|show|display|give|provide|tell|summarise|summarize|explain|classify|segment|\
     transcribe|detect|extend|improve|optimise|optimize|clean|tidy|format|lint|ensure|keep|use|save|store|load|\
     import|export|print|plot|draw|render|sort|filter|merge|join|split|combine|apply|assign|book|buy|order|pay|\
     sell|play|take|put|turn|switch|toggle|control|monitor|track|record|log|register|subscribe|cancel|confirm|\
     archive|back|restore|rebuild|reboot|reset|repeat|return|respond|reply|report|share|invite|message|contact|\
     attend|organise|organize|arrange|recommend|suggest|predict|train|tune|fine-tune|normalise|normalize|parse|\
     process|perform|conduct|carry|complete|finish|continue|begin|do|go|let|look|help|visualize|visualise|edit|\
     modify|adjust|crop|resize|rotate|drop|expose|lock|unlock|grant|revoke|encrypt|decrypt|sign|mark|label|\
     annotate|count|sum|add|divide|multiply|rank|group|cluster|map|select|insert|append|mount|unmount|attach|\
     detach|connect|disconnect|sync|synchronise|synchronize|wait|sleep|approve|reject|cache|index|seed|proofread|\
     polish|rewrite|rephrase|brainstorm|outline|sketch|paint|wash|cut|mix|bake|cook|heat|pour|stir|serve|boil|\
     fill|hang|place|tighten|drill|measure|pack|unpack|clear|spin|provision|harden|secure|watch|learn|teach|\
     practice|recover|localise|localize|transfer|trade|recite|delegate|dump|drain|squash|rebase|cherry-pick|fork|\
     clone|checkout|tag|stash|revert|undo|verify|compile|link|flash|boot|ping|finalise|finalize|queue|poll|emit|\
     capture|hire|interview|present|demo|pitch|negotiate|file|fetch|onboard|evaluate|simulate|solve|answer|infer|\
     embed|tokenise|tokenize|stop|scan|sniff|bisect|backup|check-in|reserve|enter|enrol|enroll|buffer|block|unblock|bind|allocate|assemble|attempt|\
     authenticate|authorise|authorize|automate|batch|blend|broadcast|bring|calibrate|categorise|categorize|\
     chart|compose|compress|decompress|consult|correct|coordinate|deliver|demonstrate|\
     dockerise|dockerize|double-check|duplicate|eliminate|enhance|enrich|establish|exclude|expand|facilitate|\
     finetune|flag|flush|follow|forward|gauge|guide|highlight|ingest|inform|interpolate|invert|isolate|\
     |knead|link|listen|maintain|manage|meet|mention|minimise|minimize|mirror|mock|mute|narrow|navigate|\
     |overlay|partition|pause|permit|pin|prefix|pretrain|prevent|prioritise|prioritize|prune|purge|\
     quantise|quantize|quantify|raise|react|reconcile|redact|redesign|redirect|reduce|refine|refresh|reinstall|\
     relabel|reload|reopen|reorder|reproduce|request|resolve|resume|retire|retry|reuse|rework|route|\
     sanitise|sanitize|scale|screen|scrub|separate|ship|shorten|shuffle|smooth|snapshot|sprinkle|standardise|\
     standardize|stream|stub|subtract|supply|surface|swap|tabulate|tackle|throttle|trace|track|\
     transform|transpose|trim|truncate|unify|uninstall|unzip|vacuum|vote|walk|warm|warn|whitelist|\
     wrap|zip|\
     invalidate|abort|accept|acknowledge|acquire|activate|adapt|address|adopt|advertise|aggregate|align|alter|\
     amend|assert|associate|augment|await|backfill|blacklist|boost|bypass|catalogue|centralize|centralise|clamp|\
     collapse|compact|concatenate|condense|conclude|consolidate|constrain|construct|consume|containerize|\
     containerise|contribute|cross-check|curate|customise|customize|deactivate|decode|decommission|decrease|\
     decrement|dedupe|defer|demote|denormalize|deregister|derive|destroy|dismiss|distribute|downgrade|downsample|\
     elaborate|emulate|encapsulate|encode|enforce|enqueue|enumerate|erase|escalate|externalise|externalize|flatten|\
     formalise|formalize|formulate|freeze|generalise|generalize|halt|hide|hoist|ignore|illustrate|incorporate|\
     increment|inject|instrument|internationalise|internationalize|iterate|itemise|itemize|jot|justify|kill|\
     lazy-load|leverage|materialise|materialize|memoise|memoize|minify|mitigate|obfuscate|observe|offload|omit|\
     orchestrate|overhaul|override|overwrite|paginate|parallelise|parallelize|parameterise|parameterize|paraphrase|\
     persist|personalise|personalize|pickle|populate|precompute|preload|preprocess|preserve|procure|produce|\
     promote|propagate|propose|prototype|prove|quarantine|rate-limit|realign|rearrange|reassign|rebrand|\
     recalculate|recheck|recompile|recompute|reconfigure|reconnect|recreate|redeploy|redefine|redo|reformat|\
     regenerate|reindex|relax|relocate|remap|remediate|remind|remodel|renew|renumber|repackage|repair|repartition|\
     replay|replicate|repoint|reprocess|requeue|reschedule|reseed|resubmit|retag|retarget|retrain|reupload|\
     revalidate|reverse|revise|revisit|reword|serialise|serialize|shrink|shut|skip|smoke-test|soften|specify|\
     stabilise|stabilize|strengthen|strip|subclass|substitute|suppress|suspend|symlink|synthesise|synthesize|\
     terminate|tighten|timestamp|transcode|transmit|traverse|treat|typecheck|uncomment|undeploy|unlink|unpin|unset|\
     unsubscribe|unwrap|upsert|vacate|vet|visit|weigh|widen|wipe|withdraw",
        ),
        (
            TEST_MAKERS,
            "write|add|create|implement|run|execute|extend|rerun|update|generate|expand|author|build|complete|finish|\
     increase|improve",
        ),
        (
            CODE_OBJECTS,
            "code|function|functions|script|scripts|class|classes|module|parser|endpoint|endpoints|handler|migration|\
     migrations|program|component|components|query|queries|helper|middleware|wrapper|implementation|method|\
     methods|crate|package|library|importer|exporter|scraper|crawler|scheduler|formatter|generator|validator|\
     converter|compiler|interpreter|router|controller|resolver|decoder|encoder|tokenizer|lexer|renderer|listener|\
     watcher|worker|daemon|decorator|iterator|sdk|regex|algorithm|backend|frontend|app|api|client|server|service|hook|trait|struct|interface|adapter|loader|\
     serializer|cli|bot|plugin|types|macro|dockerfile|makefile",
        ),
        (
            ARTEFACTS,
            "image|images|release|binary|binaries|container|containers|artifact|artifacts|artefact|artefacts|wheel|\
     bundle",
        ),
        (
            PREPOSITIONS,
            "for|in|of|to|with|at|on|that|which|using|from|under|into|and|against|covering|around|by|before|after|via|as|when|until|again|now|first|locally|twice|once",
        ),
        (FINITE, "is|are|was|were|has|have|will|isn't|aren't|must|should|needs"),
        (TESTS, "test|tests|testing|testcase|testcases|coverage|unittests"),
        (WRITINGS, "docs|documentation|reference|guide|manual|report|notes|summary|article|overview"),
        (SUITES, "suite|suites|case|cases|coverage"),
        (RETRIEVAL, foreign::RETRIEVAL),
        (ANALYSIS, foreign::ANALYSIS),
        (REFACTOR, foreign::REFACTOR),
        (CODE, foreign::CODE),
        (TOOL, foreign::TOOL),
        (ASK, foreign::ASK),
        (TEST, foreign::TEST),
        (TESTS, foreign::TESTS),
        (PLAIN, foreign::PLAIN),
        (TEST_MAKERS, foreign::TEST_MAKERS),
        (PREPOSITIONS, foreign::PREPOSITIONS),
    ])
});
/// Verbs of texts in Chinese characters, which no space ends; the first list that has one counts.
const HAN: &[(&[&str], NodeKind)] = &[
    (
        &["测试", "运行测试", "編寫測試", "测验", "编写测试", "编写单元测试", "添加测试", "運行測試", "测試", "テスト"],
        NodeKind::UnitTest,
    ),
    (
        &["查找", "搜索", "获取", "下载", "读取", "查询", "检索", "検索", "取得", "ダウンロード", "収集", "收集"],
        NodeKind::Retrieval,
    ),
    (&["分析", "审查", "比较", "调查", "检查", "评估", "調査", "比較", "確認", "レビュー"], NodeKind::Analysis),
    (&["重构", "重命名", "提取", "简化", "リファクタ"], NodeKind::Refactor),
    (
        &[
            "实现",
            "添加",
            "创建",
            "修复",
            "新增",
            "增加",
            "编写代码",
            "构建",
            "搭建",
            "实装",
            "実装",
            "追加",
            "作成",
            "修正",
        ],
        NodeKind::CodeImplementation,
    ),
    (
        &[
            "运行",
            "执行",
            "部署",
            "安装",
            "发布",
            "发送",
            "通知",
            "回滚",
            "重启",
            "実行",
            "デプロイ",
            "インストール",
            "送信",
            "起動",
        ],
        NodeKind::ToolCall,
    ),
    (&["询问", "确认", "澄清"], NodeKind::Clarification),
];

/// The kind of a text by its verb, or by that of the group it stands in.
pub(super) fn kind(text: &str, lent: Option<&str>) -> NodeKind {
    own_kind(text).or_else(|| lent.and_then(own_kind)).unwrap_or(NodeKind::Processing)
}

/// The kind that the text's own verb gives.
pub(super) fn own_kind(text: &str) -> Option<NodeKind> {
    named_kind(text, NAMES_MAX)
}

/// So many names may stand before what is done: "Web: setup: install the tools".
const NAMES_MAX: usize = 4;

fn named_kind(text: &str, n_names: usize) -> Option<NodeKind> {
    let text = super::loose::time(text).map_or(text, |length| &text[length..]);
    // What stands in brackets at the end is said beside the task.
    let beside = if text.ends_with(')') { text.rfind(" (").filter(|at| !text[at + 2..].contains('`')) } else { None };
    let open = is_open(text);
    let text = beside.map_or(text, |at| &text[..at]);
    let plain = instruction(text);
    let plain = after_lead(plain).map(instruction).filter(|rest| begins_with_verb(rest)).unwrap_or(plain);
    if is_question_mark(text) {
        return Some(NodeKind::Clarification);
    }
    if plain.starts_with(is_cjk) {
        // Japanese puts the verb at the end, behind the tests that are made or run.
        if plain.contains(|c: char| matches!(c, '\u{3041}'..='\u{309f}')) {
            let last = |(verbs, _): &&(&[&str], NodeKind)| verbs.iter().filter_map(|verb| plain.rfind(verb)).max();
            let tests = HAN.first().filter(|tests| last(tests).is_some());
            return tests
                .or_else(|| HAN.iter().max_by_key(last).filter(|one| last(one).is_some()))
                .map(|(_, kind)| *kind);
        }
        let begins = HAN.iter().find(|(verbs, _)| verbs.iter().any(|verb| plain.starts_with(verb)));
        return begins.map(|(_, kind)| *kind);
    }
    let mut all: [Known; 12] = Default::default();
    let n_words = leading(plain, &mut all);
    let all = &all[..n_words];
    let first = all.first()?;
    // "Server einrichten": in German and Dutch the verb can end the line.
    let ends = all.iter().rev().find(|word| !word.is(PREPOSITIONS)).filter(|_| !first.is(VERBS));
    let verb = ends.filter(|last| last.is(TEST_MAKERS | VERBS & !PLAIN)).map(|last| last.word.as_str());
    if let Some(verb) = verb.filter(|verb| verb.ends_with("en")) {
        return named_kind(&format!("{verb} {}", plain.replacen(verb, "", 1)), n_names);
    }
    // "GET /users" is the name of a route.
    if is_route(plain) {
        return None;
    }
    // "Use the API to fetch the rates" fetches.
    let used = (first.word.is("use") && n_names > 0).then(|| find(plain, " to ")).flatten();
    let used = used.map(|at| &plain[at + 4..]).filter(|rest| begins_with_verb(rest));
    if let Some(kind) = used.and_then(|rest| named_kind(rest, n_names - 1)) {
        return Some(kind);
    }
    let second = |word: &str| all.get(1).is_some_and(|second| second.word.is(word));
    if first.is(ASK)
        || ((first.word.is("confirm") || first.word.is("check")) && second("with") && !plain.contains('`'))
        || open
    {
        return Some(NodeKind::Clarification);
    }
    if first.is(TEST) || is_tests(first, all) {
        return Some(NodeKind::UnitTest);
    }
    // "Setup: install the tools" says what is done after its name.
    let named = first_split(plain).filter(|(head, _)| head.ends_with(':') && n_names > 0);
    let named = named.filter(|(_, rest)| begins_with_verb(rest));
    let said = named.and_then(|(_, rest)| named_kind(rest, n_names - 1)).filter(|kind| *kind != NodeKind::Processing);
    said.or_else(|| verb_kind(first, second, all))
}

/// True for a method of HTTP before a path.
pub(super) fn is_route(text: &str) -> bool {
    let shouted = text.as_bytes().get(1).is_some_and(u8::is_ascii_uppercase);
    let method = if shouted { text.split_once(" /").map(|(method, _)| method) } else { None };
    method.is_some_and(|method| matches!(method, "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "HEAD" | "OPTIONS"))
}

/// What stands before and after the first space.
fn first_split(text: &str) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == b' ')?;
    Some((&text[..at], &text[at + 1..]))
}

fn verb_kind(first: &Known, second: impl Fn(&str) -> bool, all: &[Known]) -> Option<NodeKind> {
    let object = |mark: u32| object_of(all).iter().any(|word| word.is(mark));
    let verb = |word: &str| first.word.is(word);
    if verb("look") {
        return Some(if second("into") || second("at") { NodeKind::Analysis } else { NodeKind::Retrieval });
    }
    if verb("clean") && second("up") {
        return Some(NodeKind::Refactor);
    }
    if (verb("set") && second("up"))
        || (verb("write")
            && !is_prose(all)
            && (object(CODE_OBJECTS) || object_of(all).iter().any(|word| is_source(word.word.as_str()))))
    {
        return Some(NodeKind::CodeImplementation);
    }
    if (verb("build") && object(ARTEFACTS))
        || (verb("roll") && (second("back") || second("out")))
        || (first.is(TOOL) && !verb("roll"))
    {
        return Some(NodeKind::ToolCall);
    }
    let sorts = [
        (RETRIEVAL, NodeKind::Retrieval),
        (ANALYSIS, NodeKind::Analysis),
        (REFACTOR, NodeKind::Refactor),
        (CODE, NodeKind::CodeImplementation),
        (PLAIN, NodeKind::Processing),
    ];
    sorts.into_iter().find(|(mark, _)| first.is(*mark)).map(|(_, kind)| kind)
}

/// A word and what it can be.
#[derive(Default)]
struct Known<'t> {
    word: Spelt<'t>,
    marks: u32,
}

impl Known<'_> {
    fn is(&self, marks: u32) -> bool {
        self.marks & marks > 0
    }
}

/// Finds the first words, up to a preposition after the first of them, and says how many they are.
fn leading<'t>(text: &'t str, all: &mut [Known<'t>]) -> usize {
    let mut n_words = 0;
    for word in spelt_words(text).take(all.len()) {
        let marks = marks(word.as_str());
        all[n_words] = Known { word, marks };
        n_words += 1;
        if n_words > 1 && marks & PREPOSITIONS > 0 {
            // "The first test" is not "the test first".
            let [last, word] = [&all[n_words - 2].word, &all[n_words - 1].word];
            let counted = word.is("first") && ["the", "a", "our", "your"].iter().any(|article| last.is(article));
            if !counted {
                break;
            }
        }
    }
    n_words
}

/// True when what is written is text about code: "the API docs".
fn is_prose(all: &[Known]) -> bool {
    object_of(all).last().is_some_and(|word| word.is(WRITINGS))
}

/// True for the name of a file of code.
fn is_source(word: &str) -> bool {
    const ENDINGS: &[&str] = &[
        "rs", "py", "js", "jsx", "ts", "tsx", "go", "java", "c", "h", "cc", "cpp", "rb", "php", "kt", "swift", "cs",
        "sql", "sh", "scala", "lua", "zig", "ex", "hs",
    ];
    word.rsplit_once('.')
        .is_some_and(|(stem, ending)| !stem.is_empty() && ENDINGS.iter().any(|one| one.eq_ignore_ascii_case(ending)))
}

/// The words of the object: up to the first preposition.
fn object_of<'a, 't>(all: &'a [Known<'t>]) -> &'a [Known<'t>] {
    let rest = all.get(1..).unwrap_or(&[]);
    // Only the last word of what is led to ends the object, and it was judged there.
    let end = rest.len() - usize::from(rest.last().is_some_and(|word| word.is(PREPOSITIONS)));
    &rest[..end]
}

fn before_preposition<'a, 't>(all: &'a [Known<'t>]) -> &'a [Known<'t>] {
    let end = all.iter().position(|word| word.is(PREPOSITIONS)).unwrap_or(all.len());
    &all[..end]
}

/// True when the object, or a text without a verb, is about tests.
fn is_tests(first: &Known, all: &[Known]) -> bool {
    let head = if first.is(TEST_MAKERS) {
        object_of(all)
    } else if first.is(VERBS) {
        return false;
    } else {
        before_preposition(all)
    };
    // "Contract test POST /users": what stands behind the name of a test is what it is of.
    let named = all.get(1).is_some_and(|word| word.is(TESTS)) && TEST_SORTS.contains_ci(first.word.as_str());
    named
        || head.last().is_some_and(|word| word.is(TESTS))
        || head.windows(2).any(|pair| pair[0].word.is("test") && pair[1].is(SUITES))
}

/// A word that begins an instruction.
pub(super) fn is_verb(word: &str) -> bool {
    marks(word) & VERBS > 0
}

/// What a word can be; "re-run" is what "run" is.
fn marks(word: &str) -> u32 {
    let own = WORDS.marks(word);
    if own > 0 { own } else { strip_prefix_ci(word, "re-").map_or(0, |again| WORDS.marks(again)) }
}

/// True when the text begins with an instruction.
pub(super) fn begins_with_verb(text: &str) -> bool {
    let mut all = spelt_words(instruction(text));
    let is = |word: Spelt<'_>, wanted: u32| marks(word.as_str()) & wanted > 0;
    all.next().is_some_and(|word| is(word, VERBS)) && !all.next().is_some_and(|word| is(word, FINITE))
}

/// Words before "test" that make a name with it.
static TEST_SORTS: Words = Words::new(|| {
    list("unit|contract|integration|e2e|end-to-end|smoke|regression|acceptance|functional|property|load|snapshot|fuzz")
});

/// What leads to an instruction and says nothing.
static POLITE: Words = Words::new(|| {
    list(
        "please|kindly|pls|plz|also|just|someone please|somebody please|anyone please|someone should|somebody should|someone needs to|somebody needs to|someone has to|\
     someone must|can someone|could someone|can anyone|could anyone|can you|could you|would you|will you|can we|could we|i need you to|i want you to|\
     i'd like you to|i would like you to|we need to|i need to|you need to|you have to|you'll need to|you will need to|you'll have to|you will have to|i must|i also need you to|\
     feel free to|don't hesitate to|do not hesitate to|we now need to|i want to|we want to|i would like to|\
     i'd like to|we would like to|we'd like to|i have to|we have to|we must|you must|you should|we should|\
     i should|i also need to|i also want to|i also would like to|i would also like to|i'd also like to|\
     we also need to|let's|let us|help me to|help me|help us|help|go ahead and|try to|make an effort to|\
     be so kind as to|i'm looking to|i am looking to|i want|i need|we need|go and|remember to|don't forget to|\
     do not forget to|be sure to|want to|need to|proceed to|start by|begin by|to do|now|so|and|could i|can i|\
     may i|ok|okay|hi|hello|hey|i will|i'll|we'll|we will|i'm going to|i am going to|possibly|it is necessary to|\
     in order to|optionally|it would be great if you could|it would be great if you can|it would be nice if you could|\
     it would be helpful if you could|it would be helpful if you can|i would appreciate it if you could|\
     i'd appreciate it if you could|i would be grateful if you could|you could|todo:|fixme:|todo -",
    )
});

/// The text after the words that only lead to it.
pub(super) fn instruction(text: &str) -> &str {
    let worded = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    let begins = |c: char| c.is_alphanumeric() || matches!(c, '`' | '/' | '.');
    let mut rest = if worded { text } else { text.trim_start_matches(|c| !begins(c)) };
    for _ in 0..6 {
        match POLITE.longest(rest) {
            Some((_, after)) if !after.trim().is_empty() => {
                rest = after.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            }
            Some(_) | None => break,
        }
    }
    rest
}

/// What follows "In order to save time," and its like: words before a comma that say why, where or for what.
pub(super) fn after_lead(text: &str) -> Option<&str> {
    static LEADS: Words = Words::new(|| {
        list(
            "to|in|for|before|after|once|when|while|during|until|as|with|on|at|from|using|\
         based|given|since|because|by|considering",
        )
    });
    let first = &text[..find_early(text, b' ', 12).or((text.len() <= 11).then_some(text.len()))?];
    if !LEADS.contains_ci(first) {
        return None;
    }
    let head = &text[..text.floor_char_boundary(160)];
    let colon = find(head, ": ").filter(|at| leads(&head[..*at]));
    let comma = [find(head, ", "), colon].into_iter().flatten().min()?;
    let rest = &text[comma + 2..];
    Some(after_word(rest, "first").filter(|_| colon == Some(comma)).map_or(rest, str::trim_start))
}

/// True for "For the release" before a colon, which says what is meant by what follows; "for example" says nothing of it.
fn leads(head: &str) -> bool {
    let shows = ["example", "instance", "following", "such", "this", "that"];
    let few = words(head).nth(5).is_none() && !head.contains(['`', '.', ':']);
    few && !words(head).any(|word| shows.contains(&word.as_str()))
}

pub(super) fn is_question_mark(text: &str) -> bool {
    let goes_on = text.as_bytes().last().is_some_and(u8::is_ascii_alphanumeric);
    !goes_on
        && text
            .trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | ')' | '*' | '_' | '\u{201d}'))
            .ends_with(['?', '\u{ff1f}'])
}

/// `TBD` and `???`: something is not decided yet.
pub(super) fn is_open(text: &str) -> bool {
    let words = || text.split(|c: char| !c.is_alphanumeric());
    let signs = |a: u8, b: u8| ((a == b'?') & (b == b'?')) | ((a == b'T') & (b == b'B'));
    // Most texts have neither of these signs.
    any_byte(text, |byte| (byte == b'?') | (byte == b'B'))
        && any_pair(text, signs)
        && (holds(text, "???") || words().any(|word| matches!(word, "TBD" | "TBC")))
}

/// With these a request begins that has the form of a question.
static REQUESTS: Words = Words::new(|| {
    list(
        "can you|could you|would you|will you|can someone|could someone|can anyone|could anyone|can i get|could i get|may i have|can i have|could i have|please|\
     would it be possible to|is it possible to|can you please|could you please|can we get|how about you|\
     would you mind|it would be great if you could|it would be great if you can|\
     it would be nice if you could|it would be helpful if you could|it would be helpful if you can|\
     it would be helpful if you|i would appreciate it if you could|i would be grateful if you could|\
     i'd appreciate it if you could",
    )
});
/// These make a request of what they stand in.
static ASIDES: Words = Words::new(|| list(", can you|, could you|, please| could you please| can you please"));

/// True for a question that is really a request.
pub(super) fn is_request(text: &str) -> bool {
    let plain = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    // "@ann could you look at it?"
    let named = text.starts_with('@').then(|| plain.split_once(' ')).flatten();
    let plain = named.map_or(plain, |(_, rest)| rest.trim_start());
    let plain = after_any(plain, &["and", "also", "so", "hey", "hi", "hello", "ok", "okay"])
        .map_or(plain, |rest| rest.trim_start_matches([',', ' ']));
    // An aside is told from other commas and spaces by its first three bytes.
    let begins = |bytes: &[u8]| matches!(bytes, [b',', b' ', b'c' | b'C' | b'p' | b'P'] | [b' ', b'c' | b'C', _]);
    let mut starts = text.as_bytes().windows(3).enumerate().filter(|(_, bytes)| begins(bytes));
    let joins = |a: u8, b: u8| ((a == b',') & (b == b' ')) | ((a == b' ') & ((b == b'c') | (b == b'C')));
    let aside = || any_pair(text, joins);
    REQUESTS.after(plain).is_some() || aside() && starts.any(|(at, _)| ASIDES.begin_ci(&text[at..]))
}
